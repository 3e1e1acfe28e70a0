// Command pai-csr-approver approves the certificates that kubelets request for their own servers.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/openpai/paictl/pkg/cluster/approver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))) // the libraries log in the same format
	err := approver.Run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-csr-approver:", err)
		os.Exit(1)
	}
}
