package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// change is one event of a pod that was not bookkeeping, and when it was seen.
type change struct {
	kind watch.EventType
	pod  *corev1.Pod
	at   time.Time
}

func runningAndReady(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning {
		return false
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// position is the resourceVersion to watch from, and the names that exist there.
func position(ctx context.Context, client *kubernetes.Clientset, namespace string) (string, []string, error) {
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", nil, err
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return list.ResourceVersion, names, nil
}

// follow sends every change after `version`, across watches that the server ends, until ctx is done.
// It closes `out` at the end; an error that cannot be carried on from is left in *failure before that.
func follow(
	ctx context.Context, client *kubernetes.Clientset, namespace, version string, out chan<- change, failure *error,
) {
	defer close(out)
	for ctx.Err() == nil {
		stream, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{
			ResourceVersion: version, AllowWatchBookmarks: true,
		})
		if err != nil {
			if ctx.Err() == nil {
				*failure = fmt.Errorf("watch: %w", err)
			}
			return
		}
		for event := range stream.ResultChan() {
			if event.Type == watch.Error {
				*failure = fmt.Errorf("watch: %w", apierrors.FromObject(event.Object))
				stream.Stop()
				return
			}
			pod, isPod := event.Object.(*corev1.Pod)
			if !isPod {
				continue
			}
			version = pod.ResourceVersion
			if event.Type == watch.Bookmark {
				continue
			}
			select {
			case out <- change{event.Type, pod, time.Now()}:
			case <-ctx.Done():
			}
		}
		stream.Stop()
	}
}
