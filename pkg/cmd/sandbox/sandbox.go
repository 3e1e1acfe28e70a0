// Package sandbox contains the commands "paictl sandbox ...", which create hosts for experiments.
// In: flags. Out: hosts on this machine, each with a separate sshd, systemd and address, or a Kubernetes API with simulated nodes;
// pkg/cluster/sandbox does the work.
package sandbox

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdSandbox returns "paictl sandbox".
func NewCmdSandbox(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Make hosts on this machine to try out a cluster, and remove them again",
		Long: `Hosts with their own sshd, systemd and address, made on this Linux machine (as root), and a
quick-start file for them; or, without root, a Kubernetes API with simulated nodes.

"paictl sandbox down" removes everything of a sandbox.`,
		Example: `  paictl sandbox up --hosts 3
  paictl config generate -i /var/lib/paictl/sandbox/quick-start.yaml -o ./cluster
  paictl cluster up -p ./cluster
  paictl sandbox down`,
	}
	cmd.AddCommand(NewCmdUp(f, nil), NewCmdList(f), NewCmdSSH(f, nil), NewCmdStop(f, nil), NewCmdStart(f, nil),
		NewCmdReboot(f, nil), NewCmdFault(f), NewCmdDown(f))
	return cmd
}

// addDirFlag adds --dir. The default is a system folder for root, and a folder in the home directory for other users.
func addDirFlag(cmd *cobra.Command, f *cmdutil.Factory, dir *string) {
	cmd.Flags().StringVarP(dir, "dir", "d", defaultDir(os.Geteuid(), f.Getenv), "folder of the sandbox's state")
	_ = cmd.MarkFlagDirname("dir")
}

func defaultDir(uid int, getenv func(string) string) string {
	if uid == 0 {
		return sandbox.DefaultDir
	}
	if state := getenv("XDG_STATE_HOME"); state != "" {
		return filepath.Join(state, "paictl", "sandbox")
	}
	return filepath.Join(getenv("HOME"), ".local", "state", "paictl", "sandbox")
}

// completeHosts completes the names of the hosts in the sandbox.
func completeHosts(dir *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		s, err := sandbox.Load(*dir, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Names(), cobra.ShellCompDirectiveNoFileComp
	}
}
