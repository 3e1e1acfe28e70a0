// Package service contains the commands "paictl service ...", which manage the platform's services on a Kubernetes cluster.
// In: flags, a kubeconfig, and the configuration that is stored in the cluster. Out: the results of pkg/services, as progress on stderr and data
// on stdout.
package service

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdService returns "paictl service".
func NewCmdService(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Start, stop, upgrade and inspect the platform's services",
		Long: `Runs the services of services-configuration.yaml in a Kubernetes cluster: monitoring, alerts,
storage and others. Each is a Helm chart that is part of paictl, or your own.

The commands use the configuration that the cluster stores, so push it first:
  paictl config push -p ./cluster
  paictl service start

They need a kubeconfig: releases are stored in Secrets, which the platform's server doesn't read. Only "service status"
also works after "paictl login", for administrators.

Each command changes only what differs from the configuration. After any failure, run it again.`,
		Example: `  paictl service list
  paictl service start
  paictl service status
  paictl service logs -n prometheus -f
  paictl service stop -n grafana`,
	}
	cmd.AddCommand(NewCmdList(f), NewCmdStart(f, nil), NewCmdStop(f), NewCmdRestart(f), NewCmdUpgrade(f), NewCmdDelete(f),
		NewCmdStatus(f), NewCmdLogs(f), NewCmdValues(f), NewCmdTemplate(f))
	return cmd
}
