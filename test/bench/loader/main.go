// Command loader puts load on an API server and watches what comes of it, for the bench.
//
// It is the one clock of the bench: every subject (kwok, virtual-kubelet, Spillway, and the loader
// itself as the bare floor) is measured by the same watch. It shares the machine's cores with what
// it measures, so it speaks protobuf and asks for small answers.
//
//	loader fill  --count N [--patches 2]   create N pods; until all are Running and Ready
//	loader one   --count N                 one pod at a time: bound to Running
//	loader drain [--force]                 delete all pods of the namespace; until all are gone
//
// One JSON object goes to stdout; what went wrong goes to stderr, with exit code 1.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type options struct {
	namespace string
	node      string
	prefix    string
	count     int
	workers   int
	patches   int
	gap       time.Duration
	force     bool
}

func connect(kubeconfig string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "spillway-bench-loader"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(config)
}

// percentile of values that are sorted; the nearest rank.
func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p*float64(len(sorted))+0.999999) - 1
	return milliseconds(sorted[min(max(rank, 0), len(sorted)-1)])
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func summary(values []time.Duration) map[string]float64 {
	slices.Sort(values)
	return map[string]float64{
		"p50_ms": percentile(values, 0.50),
		"p99_ms": percentile(values, 0.99),
		"max_ms": percentile(values, 1),
	}
}

func run(ctx context.Context, verb, kubeconfig string, o options) (map[string]any, error) {
	client, err := connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	switch verb {
	case "fill":
		return fill(ctx, client, o)
	case "one":
		return one(ctx, client, o)
	case "drain":
		return drain(ctx, client, o)
	}
	return nil, fmt.Errorf("unknown verb %q: fill, one or drain", verb)
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: loader fill|one|drain [flags]; loader fill --help lists them")
		os.Exit(2)
	}
	var o options
	flags := flag.NewFlagSet("loader "+os.Args[1], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig to use")
	timeout := flags.Duration("timeout", 5*time.Minute, "give up after this long")
	flags.StringVar(&o.namespace, "namespace", "default", "namespace of the pods; must exist")
	flags.StringVar(&o.node, "node", "", "node that the pods are bound to")
	flags.StringVar(&o.prefix, "prefix", "pod", "names are PREFIX-0, PREFIX-1, ...")
	flags.IntVar(&o.count, "count", 1000, "how many pods")
	flags.IntVar(&o.workers, "workers", 24, "requests in flight")
	flags.IntVar(&o.patches, "patches", 0, "status PATCHes that the loader makes itself: 0, or 2 as a floor")
	flags.DurationVar(&o.gap, "gap", 10*time.Millisecond, "rest between two pods of `one`")
	flags.BoolVar(&o.force, "force", false, "drain with grace 0, which asks nobody")
	if err := flags.Parse(os.Args[2:]); err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	result, err := run(ctx, os.Args[1], *kubeconfig, o)
	if result != nil {
		_ = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loader:", err)
		os.Exit(1)
	}
}
