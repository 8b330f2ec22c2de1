package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// What a client that only wants to know that it was heard asks for.
const smallAnswer = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

func podFor(o options, index int) *corev1.Pod {
	no := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", o.prefix, index), Labels: map[string]string{"app": "bench"},
		},
		Spec: corev1.PodSpec{
			NodeName:                     o.node,
			AutomountServiceAccountToken: &no,
			Containers:                   []corev1.Container{{Name: "main", Image: "registry.example/bench:1"}},
		},
	}
}

// inParallel calls work(0) .. work(count-1) from `workers` goroutines and returns the first error.
func inParallel(ctx context.Context, workers, count int, work func(index int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	indices := make(chan int)
	var group sync.WaitGroup
	for range min(workers, count) {
		group.Go(func() {
			for index := range indices {
				if err := work(index); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
feed:
	for index := range count {
		select {
		case indices <- index:
		case <-ctx.Done():
			break feed
		}
	}
	close(indices)
	group.Wait()
	return context.Cause(ctx)
}

// The two writes that no virtual node can do without: what it is about to do, and that it runs.
func patchTwice(ctx context.Context, client *kubernetes.Clientset, o options, name string) error {
	now := metav1.Now().UTC().Format(time.RFC3339)
	intent := fmt.Sprintf(`{"metadata":{"annotations":{"bench.example/intent":"offer-1"}},"status":{"startTime":%q,`+
		`"conditions":[{"type":"Initialized","status":"True","lastTransitionTime":%q}]}}`, now, now)
	condition := `{"type":%q,"status":"True","lastTransitionTime":%q}`
	running := fmt.Sprintf(`{"status":{"phase":"Running","hostIP":"127.0.0.1","conditions":[`+
		condition+","+condition+`],"containerStatuses":[{"name":"main","ready":true,"started":true,`+
		`"image":"registry.example/bench:1","imageID":"","restartCount":0,"state":{"running":{"startedAt":%q}}}]}}`,
		"Ready", now, "ContainersReady", now, now)
	for _, body := range []string{intent, running} {
		_, err := client.CoreV1().RESTClient().Patch(types.StrategicMergePatchType).
			Namespace(o.namespace).Resource("pods").Name(name).SubResource("status").
			SetHeader("Accept", smallAnswer).Body([]byte(body)).Do(ctx).Raw()
		if err != nil {
			return err
		}
	}
	return nil
}

// fill creates count pods and returns when the watch has shown all of them Running and Ready.
func fill(ctx context.Context, client *kubernetes.Clientset, o options) (map[string]any, error) {
	version, _, err := position(ctx, client, o.namespace)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan change, 4096)
	var watchFailure error
	go follow(ctx, client, o.namespace, version, changes, &watchFailure)

	begin := time.Now()
	created := make(chan error, 1)
	var createdAfter time.Duration
	go func() {
		err := inParallel(ctx, o.workers, o.count, func(index int) error {
			pod := podFor(o, index)
			if _, err := client.CoreV1().Pods(o.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
			if o.patches > 0 {
				return patchTwice(ctx, client, o, pod.Name)
			}
			return nil
		})
		createdAfter = time.Since(begin)
		created <- err
	}()

	bound := make(map[types.UID]time.Time, o.count)
	ready := make(map[types.UID]bool, o.count)
	steps := make([]time.Duration, 0, o.count)
	var last time.Time
	for len(ready) < o.count {
		select {
		case seen, open := <-changes:
			if !open {
				return map[string]any{"ready": len(ready)}, firstError(watchFailure, ctx.Err())
			}
			if seen.kind == watch.Added {
				bound[seen.pod.UID] = seen.at
			}
			if !ready[seen.pod.UID] && runningAndReady(seen.pod) {
				ready[seen.pod.UID] = true
				last = seen.at
				steps = append(steps, seen.at.Sub(bound[seen.pod.UID]))
			}
		case err := <-created:
			if err != nil {
				return nil, err
			}
			created = nil
		case <-ctx.Done():
			return map[string]any{"ready": len(ready)},
				fmt.Errorf("%d of %d pods are Running and Ready: %w", len(ready), o.count, ctx.Err())
		}
	}
	if created != nil {
		if err := <-created; err != nil {
			return nil, err
		}
	}
	return map[string]any{
		"count": o.count, "seconds": last.Sub(begin).Seconds(), "requests_seconds": createdAfter.Seconds(),
		"bound_to_running": summary(steps),
	}, nil
}

func firstError(errors ...error) error {
	for _, err := range errors {
		if err != nil {
			return err
		}
	}
	return nil
}

// one creates one pod after the other and measures each on an idle cluster.
func one(ctx context.Context, client *kubernetes.Clientset, o options) (map[string]any, error) {
	version, _, err := position(ctx, client, o.namespace)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan change, 64)
	var watchFailure error
	go follow(ctx, client, o.namespace, version, changes, &watchFailure)

	var fromBound, fromRequest []time.Duration
	slowest, slowestStep := "", time.Duration(0)
	for index := range o.count {
		pod := podFor(o, index)
		asked := time.Now()
		if _, err := client.CoreV1().Pods(o.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		var bound time.Time
		for running := false; !running; {
			seen, open := <-changes
			if !open {
				return nil, firstError(watchFailure, fmt.Errorf("%s is not Running: %w", pod.Name, ctx.Err()))
			}
			if seen.pod.Name != pod.Name {
				continue
			}
			if seen.kind == watch.Added {
				bound = seen.at
			}
			if running = runningAndReady(seen.pod); running {
				step := seen.at.Sub(bound)
				fromBound = append(fromBound, step)
				if step > slowestStep {
					slowest, slowestStep = pod.Name, step
				}
				fromRequest = append(fromRequest, seen.at.Sub(asked))
			}
		}
		select {
		case <-time.After(o.gap):
		case <-ctx.Done():
		}
	}
	return map[string]any{
		"count": o.count, "bound_to_running": summary(fromBound), "request_to_running": summary(fromRequest),
		"slowest": slowest,
	}, nil
}

// drain deletes every pod of the namespace and returns when the watch has shown the last of them gone.
func drain(ctx context.Context, client *kubernetes.Clientset, o options) (map[string]any, error) {
	version, names, err := position(ctx, client, o.namespace)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan change, 4096)
	var watchFailure error
	go follow(ctx, client, o.namespace, version, changes, &watchFailure)

	policy := metav1.DeleteOptions{}
	if o.force {
		none := int64(0)
		policy.GracePeriodSeconds = &none
	}
	begin := time.Now()
	deleted := make(chan error, 1)
	go func() {
		deleted <- inParallel(ctx, o.workers, len(names), func(index int) error {
			request := client.CoreV1().RESTClient().Delete().Namespace(o.namespace).Resource("pods").
				Name(names[index]).SetHeader("Accept", smallAnswer).Body(&policy)
			if _, err := request.Do(ctx).Raw(); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
	}()
	gone := make(map[string]bool, len(names))
	last := begin
	for len(gone) < len(names) {
		select {
		case seen, open := <-changes:
			if !open {
				return map[string]any{"gone": len(gone)}, firstError(watchFailure, ctx.Err())
			}
			if seen.kind == watch.Deleted {
				gone[seen.pod.Name] = true
				last = seen.at
			}
		case err := <-deleted:
			if err != nil {
				return nil, err
			}
			deleted = nil
		case <-ctx.Done():
			return map[string]any{"gone": len(gone)},
				fmt.Errorf("%d of %d pods are gone: %w", len(gone), len(names), ctx.Err())
		}
	}
	return map[string]any{"count": len(names), "seconds": last.Sub(begin).Seconds()}, nil
}
