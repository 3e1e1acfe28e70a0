// Command pai-backup saves the cluster that it runs in, once.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	// Its image has no certificates of authorities, and servers of S3 have certificates of public ones.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/openpai/paictl/pkg/cluster/backups"
	"github.com/openpai/paictl/pkg/hint"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := backups.Run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-backup:", err)
		if remedy := hint.Of(err); remedy != "" {
			fmt.Fprintln(os.Stderr, "  ->", remedy)
		}
		os.Exit(1)
	}
}
