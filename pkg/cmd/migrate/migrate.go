// Package migrate contains the commands that import users and jobs from other systems.
// In: kubeconfigs of both clusters. Out: objects in this cluster, and a report of everything that wasn't imported.
package migrate

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdMigrate returns "paictl migrate".
func NewCmdMigrate(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate COMMAND",
		Short: "Import people and jobs from another system",
		Long:  `Imports data from a cluster of another system. To convert the files of OpenPAI's configuration, use "paictl config migrate".`,
		Example: `  paictl migrate openpai --from-kubeconfig old.conf --dry-run
  paictl migrate openpai --from-kubeconfig old.conf`,
	}
	cmd.AddCommand(NewCmdOpenPAI(f))
	return cmd
}
