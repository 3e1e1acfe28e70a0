// Command pai-api-vip assigns the virtual address of the Kubernetes API to one of the masters.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/openpai/paictl/pkg/cluster/apivip"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))) // the libraries log in the same format
	err := apivip.Run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-api-vip:", err)
		os.Exit(1)
	}
}
