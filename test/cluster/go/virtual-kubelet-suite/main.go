// virtual-kubelet's own end-to-end suite as a program, run against the node of any kubelet:
//
//	suite -test.v -kubeconfig FILE -namespace NAME -node NAME
//
// It prints what `go test -v` prints, and fails as that does.
package main

import (
	"flag"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/test/e2e"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of a user who may see nodes and make pods")
	namespace := flag.String("namespace", "default", "where its pods are made")
	node := flag.String("node", "", "the virtual node, and a pod on it that answers as the node does")
	everything := func(_, _ string) (bool, error) { return true, nil }
	run := func(t *testing.T) {
		e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
			Kubeconfig: *kubeconfig,
			Namespace:  *namespace,
			NodeName:   *node,
		}).Run(t)
	}
	// testing.Main parses the flags, those of testing and ours.
	testing.Main(everything, []testing.InternalTest{{Name: "Suite", F: run}}, nil, nil)
}
