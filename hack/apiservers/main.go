// Command apiservers runs API servers, each with its etcd, for the packages that "make test-more" tests. It prints "ready" when the API servers have
// started. It exits when its standard input is closed, so that the API servers don't outlive the test run.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func main() { os.Exit(run()) }

func run() int {
	n := 0
	if len(os.Args) == 4 {
		n, _ = strconv.Atoi(os.Args[3])
	}
	if n < 1 {
		fmt.Fprintln(os.Stderr, "Usage: apiservers FOLDER BUNDLE COUNT")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := kubetest.Serve(ctx, os.Args[1], os.Args[2], n, func() { fmt.Println("ready") }); err != nil {
		fmt.Fprintln(os.Stderr, "apiservers:", err)
		return 1
	}
	return 0
}
