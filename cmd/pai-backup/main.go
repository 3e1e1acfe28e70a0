// Command pai-backup makes one backup of its cluster.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	// The image has no CA certificates, and S3 servers have certificates of public CAs.
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
