package support

import (
	"context"
	"fmt"
	"io"
	"path"
	"text/tabwriter"
	"time"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// configuration adds the files of the folder and of the cluster's copy. Secrets are masked according to the meaning of the fields.
func (b *bundle) configuration(context.Context) {
	b.folder()
	if b.o.Cluster == nil {
		b.archive.missing(path.Join(PartConfiguration, "cluster"), b.o.ClusterErr)
		return
	}
	if b.copyErr != nil {
		b.archive.missing(path.Join(PartConfiguration, "cluster"), b.o.Cluster.Explain(b.copyErr))
	}
	if b.copy != nil {
		for name, text := range b.copy.Masked() {
			b.text(path.Join(PartConfiguration, "cluster", name), fmt.Sprintf("The cluster's copy, revision %d, secrets masked", b.copy.Revision.Number), text)
		}
	}
	if len(b.history) > 0 {
		b.archive.add(path.Join(PartConfiguration, "history.txt"), "Revisions of the cluster's copy", func(w io.Writer) error {
			t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
			fmt.Fprintln(t, "REVISION\tTIME\tBY\tPAICTL\tFILES\tMESSAGE")
			for _, r := range b.history {
				fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%v\t%q\n", r.Number, r.Time.UTC().Format(time.RFC3339), r.By, r.Version, r.Files, r.Message)
			}
			return t.Flush()
		})
	}
}

func (b *bundle) folder() {
	if b.o.FolderErr != nil {
		b.archive.missing(path.Join(PartConfiguration, "folder"), b.o.FolderErr)
	}
	for name, err := range b.shown.Errors {
		b.archive.missing(path.Join(PartConfiguration, "folder", name), err)
	}
	for name, text := range b.shown.Files {
		b.text(path.Join(PartConfiguration, "folder", name), "The files of the operator's folder, secrets masked", text)
	}
	if b.o.Config == nil {
		return
	}
	b.archive.add(path.Join(PartConfiguration, "effective.yaml"), "The values in effect, with defaults, and where each value comes from", func(w io.Writer) error {
		text, err := b.o.Config.Annotated(catalogue.SecretPaths(b.o.Config)...)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
	b.archive.add(path.Join(PartConfiguration, "findings.txt"), "Findings of \"paictl config validate\" in the folder", func(w io.Writer) error {
		found := config.Validate(b.o.Config, catalogue.Check)
		if len(found) == 0 {
			_, err := io.WriteString(w, "no findings\n")
			return err
		}
		return found.Write(w)
	})
}

func (b *bundle) text(name, what string, text []byte) {
	b.archive.add(name, what, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
