// Package config contains the commands "paictl config ...", which generate, check, show and migrate the configuration of a cluster, and store it
// in the cluster.
// In: flags, a quick-start file or a configuration folder. Out: files, findings, values.
package config

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdConfig returns "paictl config".
func NewCmdConfig(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Make, check and show a cluster's configuration, and store it in the cluster",
		Long: `A configuration is a folder with four files:

  layout.yaml                    the machines, their hardware and roles
  kubernetes-configuration.yaml  Kubernetes: networks, versions, settings
  k8s-role-definition.yaml       what the roles mean
  services-configuration.yaml    the platform's services

"config generate" makes them from a quick-start file that lists little more than addresses. "config
push" stores them in the cluster, and "paictl service start" uses that copy.`,
		Example: `  paictl config generate -i quick-start.yaml -o ./cluster
  paictl config validate -p ./cluster
  paictl config show -p ./cluster
  paictl config push -p ./cluster`,
	}
	cmd.AddCommand(NewCmdExample(f), NewCmdGenerate(f), NewCmdValidate(f), NewCmdShow(f), NewCmdSchema(f), NewCmdMigrate(f),
		NewCmdPush(f), NewCmdPull(f), NewCmdDiff(f), NewCmdGetID(f), NewCmdHistory(f), NewCmdRollback(f))
	return cmd
}

// addDirFlag adds the flag -p. All commands on a configuration folder have this flag.
func addDirFlag(cmd *cobra.Command, f *cmdutil.Factory, dir *string) {
	cmd.Flags().StringVarP(dir, "config-path", "p", ".", "folder with the configuration (setting: config, PAICTL_CONFIG)")
	_ = cmd.MarkFlagDirname("config-path")
	cmd.PreRunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("config-path") {
			return nil
		}
		settings, err := f.Settings()
		if err != nil {
			return err
		}
		if s := settings.GetString("config"); s != "" {
			*dir = s
		}
		return nil
	}
}
