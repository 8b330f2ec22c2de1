// Command virtual-kubelet is the bench's tuned peer: the virtual-kubelet library as it comes, with
// its client rate limits lifted, 50 workers, and queues that delay a retry by back-off only. Its
// provider keeps pods in memory, returns at once and notifies, so what is measured is the library.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

var errUnsupported = errors.New("not supported by the bench's provider")

// provider keeps every pod's last state behind one lock.
type provider struct {
	mu     sync.Mutex
	pods   map[string]*corev1.Pod
	notify func(*corev1.Pod)
}

func key(namespace, name string) string { return namespace + "/" + name }

func (p *provider) CreatePod(_ context.Context, pod *corev1.Pod) error {
	pod = pod.DeepCopy()
	now := metav1.Now()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.HostIP = "127.0.0.1"
	pod.Status.PodIP = "127.0.0.1"
	pod.Status.StartTime = &now
	pod.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now,
		})
	}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:  container.Name,
			Image: container.Image,
			Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	p.store(pod)
	return nil
}

func (p *provider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	p.store(pod.DeepCopy())
	return nil
}

func (p *provider) store(pod *corev1.Pod) {
	p.mu.Lock()
	p.pods[key(pod.Namespace, pod.Name)] = pod
	notify := p.notify
	p.mu.Unlock()
	notify(pod)
}

func (p *provider) DeletePod(_ context.Context, pod *corev1.Pod) error {
	id := key(pod.Namespace, pod.Name)
	p.mu.Lock()
	if _, known := p.pods[id]; !known {
		p.mu.Unlock()
		return errdefs.NotFound("pod not found")
	}
	delete(p.pods, id)
	notify := p.notify
	p.mu.Unlock()

	pod = pod.DeepCopy()
	now := metav1.Now()
	pod.Status.Phase = corev1.PodSucceeded
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = false
		pod.Status.ContainerStatuses[i].State = corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: now},
		}
	}
	notify(pod)
	return nil
}

func (p *provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod, known := p.pods[key(namespace, name)]; known {
		return pod.DeepCopy(), nil
	}
	return nil, errdefs.NotFound("pod not found")
}

func (p *provider) GetPodStatus(
	ctx context.Context, namespace, name string,
) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(p.pods))
	for _, pod := range p.pods {
		pods = append(pods, pod.DeepCopy())
	}
	return pods, nil
}

func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	p.mu.Lock()
	p.notify = notify
	p.mu.Unlock()
}

func (p *provider) GetContainerLogs(
	context.Context, string, string, string, api.ContainerLogOpts,
) (io.ReadCloser, error) {
	return nil, errUnsupported
}

func (p *provider) RunInContainer(
	context.Context, string, string, string, []string, api.AttachIO,
) error {
	return errUnsupported
}

func (p *provider) AttachToContainer(
	context.Context, string, string, string, api.AttachIO,
) error {
	return errUnsupported
}

func (p *provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return nil, errUnsupported
}

func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	return nil, errUnsupported
}

func (p *provider) PortForward(
	context.Context, string, string, int32, io.ReadWriteCloser,
) error {
	return errUnsupported
}

func backOffOnly() workqueue.TypedRateLimiter[any] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[any](
		5*time.Millisecond, time.Second)
}

func run(ctx context.Context, kubeconfig, name, pods string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	capacity, err := resource.ParseQuantity(pods)
	if err != nil {
		return fmt.Errorf("--pods: %w", err)
	}
	create := func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		resources := corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("100000"),
			corev1.ResourceMemory: resource.MustParse("1000Ti"),
			corev1.ResourcePods:   capacity,
		}
		c.Node.Status.Capacity = resources
		c.Node.Status.Allocatable = resources
		return &provider{pods: map[string]*corev1.Pod{}, notify: func(*corev1.Pod) {}}, nil, nil
	}
	virtual, err := nodeutil.NewNode(name, create,
		nodeutil.WithClient(client),
		func(c *nodeutil.NodeConfig) error {
			c.NumWorkers = 50
			return nil
		},
		nodeutil.WithPodControllerConfigOverrides(func(c *node.PodControllerConfig) error {
			c.SyncPodsFromKubernetesRateLimiter = backOffOnly()
			c.DeletePodsFromKubernetesRateLimiter = backOffOnly()
			c.SyncPodStatusFromProviderRateLimiter = backOffOnly()
			return nil
		}),
	)
	if err != nil {
		return err
	}
	return virtual.Run(ctx)
}

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig to use")
	name := flag.String("nodename", "virtual-kubelet", "name of the node to register")
	pods := flag.String("pods", "20000", "how many pods the node says it can hold")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *name, *pods); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "virtual-kubelet:", err)
		os.Exit(1)
	}
}
