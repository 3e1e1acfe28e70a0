package bundle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// verifyOptions are the options of "paictl bundle verify".
type verifyOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	Dir    string
}

// verdict is the result of comparing one artifact with its checksum.
type verdict struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	OK     bool   `json:"ok"`
	Want   string `json:"sha256"`
	Got    string `json:"got,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func newCmdVerify(f *cmdutil.Factory, runF func(context.Context, *verifyOptions) error) *cobra.Command {
	opts := &verifyOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "verify [DIR]",
		Short: "Compare every file of a bundle with its checksum",
		Long:  "Hashes every file of the bundle in " + dirHelp + ", and lists those that differ.",
		Example: `  paictl bundle verify
  paictl bundle verify /srv/bundle -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opts.Dir, err = folder(f, opts.Dir, args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return verifyRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml")
	addBundleFlag(cmd, &opts.Dir)
	return cmd
}

func verifyRun(ctx context.Context, opts *verifyOptions) error {
	b, err := bundle.Open(opts.Dir)
	if err != nil {
		return err
	}
	n, total := 0, len(b.List(""))
	err = b.Verify(ctx, func(bundle.Artifact) {
		n++
		if opts.IO.IsErrTTY() {
			fmt.Fprintf(opts.IO.Err, "\r%d/%d files checked", n, total)
		}
	})
	if opts.IO.IsErrTTY() {
		fmt.Fprintln(opts.IO.Err)
	}
	corrupt, damaged := errors.AsType[*bundle.CorruptError](err)
	if err != nil && !damaged {
		return err
	}
	list := verdicts(b, corrupt)
	if damaged || !opts.Output.IsTable() {
		if werr := opts.Output.Write(opts.IO.Out, list, verdictTable(list)); werr != nil {
			return werr
		}
	}
	if damaged {
		return hint.Errorf(corrupt.Remedy(), "%d of %d files of bundle %s differ from its manifest", len(corrupt.Bad), total, b.Dir())
	}
	fmt.Fprintf(opts.IO.Err, "bundle %s is complete: %s\n", b.Dir(), plural.Of(total, "file"))
	return nil
}

func verdicts(b *bundle.Bundle, corrupt *bundle.CorruptError) []verdict {
	bad := map[string]bundle.Bad{}
	if corrupt != nil {
		for _, x := range corrupt.Bad {
			bad[x.Artifact.Path] = x
		}
	}
	var out []verdict
	for _, a := range b.List("") {
		v := verdict{Name: a.Name, Kind: a.Kind, Path: a.Path, OK: true, Want: a.SHA256}
		if x, ok := bad[a.Path]; ok {
			v.OK, v.Got, v.Reason = false, x.Got, x.String()
		}
		out = append(out, v)
	}
	return out
}

// verdictTable returns a table of the artifacts that are missing or have a wrong checksum.
func verdictTable(list []verdict) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"FILE", "EXPECTED", "FOUND"}}
	for _, v := range list {
		if v.OK {
			continue
		}
		got := v.Got
		if got == "" {
			got = strings.TrimPrefix(v.Reason, v.Path+" is ")
		}
		t.Rows = append(t.Rows, []string{v.Path, v.Want, got})
	}
	return t
}
