// Command pai-scheduler gives gangs of pods their GPUs, as the extender of a kube-scheduler beside it.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/openpai/paictl/pkg/scheduler/extender"
)

func main() {
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))) // what client-go says looks like the rest
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := extender.Run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-scheduler:", err)
		os.Exit(1)
	}
}
