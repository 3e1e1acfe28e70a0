package backup

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// VerifyOptions are the options of "paictl cluster backup verify".
type VerifyOptions struct {
	Factory *cmdutil.Factory
	Output  cmdutil.Output
	Keys    keyFlags
	Place   placeFlags
	File    string
	// Rehearse starts etcd and the API server of the bundle with the data of the backup.
	Rehearse bool
	Bundle   string
}

// NewCmdVerify returns "paictl cluster backup verify".
func NewCmdVerify(f *cmdutil.Factory) *cobra.Command {
	opts := &VerifyOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that a backup can be opened and is whole",
		Long: `Opens a backup, reads all of it, compares its parts with their checksums, checks whether the keys of the cluster belong
together, and lists its contents. It asks for the passphrase if the backup has one and --passphrase-file isn't given. It writes no files.

With --rehearse it also starts etcd and a Kubernetes API server on this machine, from the bundle, on the backup's database and with its key
for secrets, and counts the objects. They listen on loopback only. The database and that key are unpacked into a folder that only you can read, and
deleted at the end. FILE may be on another machine or in S3: see "paictl cluster backup".`,
		Example: `  paictl cluster backup verify pai-20261127T020000Z.paictl-backup
  paictl cluster backup verify pai-20261127T020000Z.paictl-backup --identity key.txt
  paictl cluster backup verify pai-20261127T020000Z.paictl-backup --identity key.txt --rehearse --bundle ./bundle
  paictl cluster backup verify s3://backups/pai/pai-20261127T020000Z.paictl-backup --identity key.txt --s3-endpoint https://s3.example.org
  paictl cluster backup verify pai-20261127T020000Z.paictl-backup --passphrase-file ./passphrase -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.File = args[0]
			return verifyRun(cmd.Context(), opts)
		},
	}
	opts.Keys.add(cmd)
	opts.Place.addAlone(cmd, f)
	cmd.Flags().BoolVar(&opts.Rehearse, "rehearse", false, "serve the database on this machine, and count its objects")
	cmd.Flags().StringVar(&opts.Bundle, "bundle", "", "folder of the bundle, for --rehearse (default: $PAICTL_BUNDLE, or "+bundle.DefaultDir+")")
	_ = cmd.MarkFlagDirname("bundle")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

// checkedKeys checks the part with the keys of the cluster as a restore does, because checksums don't show whether the keys belong together.
func checkedKeys(name string, _ int64, r io.Reader) error {
	if name != backup.PartKeys {
		return nil
	}
	return cluster.CheckKeys(r)
}

func verifyRun(ctx context.Context, opts *VerifyOptions) error {
	rehearsed := &Rehearsal{}
	var err error
	var size int64
	from := archive{Factory: opts.Factory, File: opts.File, Keys: &opts.Keys, Place: &opts.Place}
	if opts.Rehearse {
		rehearsed, size, err = rehearse(ctx, from, opts.Bundle)
	} else {
		rehearsed.Manifest, size, err = from.each(ctx, checkedKeys)
	}
	if err != nil {
		return err
	}
	m := rehearsed.Manifest
	switch {
	case !opts.Output.Is("text") && opts.Rehearse:
		return opts.Output.Write(opts.Factory.IO.Out, rehearsed, cmdutil.Table{})
	case !opts.Output.Is("text"):
		return opts.Output.Write(opts.Factory.IO.Out, m, cmdutil.Table{})
	}
	w := opts.Factory.IO.Out
	fmt.Fprintf(w, "%s: whole, %s\n", opts.File, humanize.IBytes(uint64(size)))
	fmt.Fprintf(w, "cluster %s, %s, saved %s by paictl %s\n", terminal.Word(m.Cluster), terminal.Word(m.Kubernetes), m.Time.Local().Format(time.RFC1123), terminal.Word(m.Paictl))
	fmt.Fprintf(w, "%s: %s\n", plural.Of(len(m.Machines), "machine"), names(m.Machines))
	for _, p := range m.Parts {
		fmt.Fprintf(w, "  %-40s %10s\n", terminal.Word(p.Name), humanize.IBytes(uint64(p.Size)))
	}
	for _, lacks := range m.Missing {
		fmt.Fprintf(w, "! not in it: %s: %s\n", terminal.Line(lacks.What), terminal.Line(lacks.Why))
	}
	if opts.Rehearse {
		fmt.Fprintln(w, "rehearsed: its API server serves")
		for _, o := range rehearsed.Objects {
			fmt.Fprintf(w, "  %8d %s\n", o.Count, o.Kind)
		}
	}
	return nil
}

func names(machines []backup.Machine) string {
	out := make([]string, 0, len(machines))
	for _, m := range machines {
		out = append(out, terminal.Word(m.Name)+" ("+terminal.Word(m.IP)+")")
	}
	return strings.Join(out, ", ")
}
