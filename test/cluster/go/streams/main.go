// Speaks exec, attach and port-forward as kubectl does, with Kubernetes' own client, to a server that is named.
//
//	streams -server http[s]://127.0.0.1:PORT -dialect spdy|v5|v4 [-i] [-t WxH,WxH] exec COMMAND...
//	streams -server http[s]://127.0.0.1:PORT -dialect spdy|tunnel forward PORT...
//
// exec exits with the code of the command; 125 is what the stream says of itself. forward prints a line
// "LOCAL REMOTE" for each port and runs until its standard input ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

var (
	server  = flag.String("server", "", "where")
	dialect = flag.String("dialect", "spdy", "how")
	input   = flag.Bool("i", false, "standard input is passed on")
	sizes   = flag.String("t", "", "a terminal, which has these sizes one after the other")
)

// sizeQueue hands out the sizes, and then no more.
type sizeQueue struct{ left []remotecommand.TerminalSize }

func (q *sizeQueue) Next() *remotecommand.TerminalSize {
	if len(q.left) == 0 {
		return nil
	}
	next := q.left[0]
	q.left = q.left[1:]
	return &next
}

func parseSizes(text string) (*sizeQueue, error) {
	queue := &sizeQueue{}
	for _, size := range strings.Split(text, ",") {
		width, height, _ := strings.Cut(size, "x")
		w, err := strconv.ParseUint(width, 10, 16)
		if err != nil {
			return nil, err
		}
		h, err := strconv.ParseUint(height, 10, 16)
		if err != nil {
			return nil, err
		}
		queue.left = append(queue.left, remotecommand.TerminalSize{Width: uint16(w), Height: uint16(h)})
	}
	return queue, nil
}

func runExec(config *rest.Config, command []string) error {
	options := remotecommand.StreamOptions{Stdout: os.Stdout, Stderr: os.Stderr}
	query := url.Values{"command": command, "output": {"1"}, "error": {"1"}}
	if *input {
		options.Stdin = os.Stdin
		query.Set("input", "1")
	}
	if *sizes != "" {
		queue, err := parseSizes(*sizes)
		if err != nil {
			return err
		}
		options.Tty, options.Stderr, options.TerminalSizeQueue = true, nil, queue
		query.Set("tty", "1")
		query.Del("error")
	}
	target, err := url.Parse(*server + "/exec?" + query.Encode())
	if err != nil {
		return err
	}
	var executor remotecommand.Executor
	if *dialect == "spdy" {
		executor, err = remotecommand.NewSPDYExecutor(config, "POST", target)
	} else {
		protocol := *dialect + ".channel.k8s.io"
		executor, err = remotecommand.NewWebSocketExecutorForProtocols(config, "GET", target.String(), protocol)
	}
	if err != nil {
		return err
	}
	return executor.StreamWithContext(context.Background(), options)
}

func runForward(config *rest.Config, ports []string) error {
	target, err := url.Parse(*server + "/portForward")
	if err != nil {
		return err
	}
	var dialer httpstream.Dialer
	if *dialect == "tunnel" {
		dialer, err = portforward.NewSPDYOverWebsocketDialer(target, config)
	} else {
		var transport http.RoundTripper
		var upgrader spdy.Upgrader
		transport, upgrader, err = spdy.RoundTripperFor(config)
		dialer = spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", target)
	}
	if err != nil {
		return err
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwards := make([]string, 0, len(ports))
	for _, port := range ports {
		forwards = append(forwards, ":"+port)
	}
	forwarder, err := portforward.NewOnAddresses(
		dialer, []string{"127.0.0.1"}, forwards, stop, ready, io.Discard, os.Stderr)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	go func() {
		<-ready
		made, err := forwarder.GetPorts()
		if err != nil {
			return
		}
		for _, port := range made {
			fmt.Printf("%d %d\n", port.Local, port.Remote)
		}
	}()
	return forwarder.ForwardPorts()
}

func main() {
	flag.Parse()
	config := &rest.Config{Host: *server}
	// With https nobody is asked who he is: this is not what is tried here.
	config.Insecure = strings.HasPrefix(*server, "https:")
	var err error
	switch flag.Arg(0) {
	case "exec":
		err = runExec(config, flag.Args()[1:])
	case "forward":
		err = runForward(config, flag.Args()[1:])
	default:
		err = errors.New("what is to be done? exec or forward")
	}
	var ended exec.CodeExitError
	if errors.As(err, &ended) {
		os.Exit(ended.Code)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
}
