package services

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// Pusher reads the configuration that a cluster stores. *store.Store implements Pusher.
type Pusher interface {
	Pull(ctx context.Context) (*store.Copy, error)
}

// FromCluster returns a Loader of the cluster's stored configuration. The Loader writes no files. Relative chart paths are relative to dir. dir is ""
// if no folder is known.
func FromCluster(held Pusher, dir string) Loader {
	return func(ctx context.Context) (*Desired, error) {
		have, err := held.Pull(ctx)
		if err != nil {
			return nil, err
		}
		c, err := config.Parse("", have.Files)
		if err != nil {
			return nil, hint.Wrap(fmt.Errorf("read the cluster's configuration, revision %d: %w", have.Revision.Number, err), remedyPush)
		}
		c.Dir = dir
		d, err := desire(ctx, c)
		if err != nil {
			return nil, hint.Wrap(err, remedyPush)
		}
		if d.Mistakes != nil {
			d.Mistakes = hint.Wrap(d.Mistakes, remedyPush)
		}
		d.Files, d.Revision = have.Files, have.Revision
		return d, nil
	}
}

const remedyPush = "correct the files, then: paictl config push -p DIR"

// FromFolder returns a Loader of a configuration folder. The Loader sends no requests to the cluster.
func FromFolder(dir string) Loader {
	return func(ctx context.Context) (*Desired, error) {
		c, err := config.Load(dir)
		if err != nil {
			return nil, err
		}
		return desire(ctx, c)
	}
}

// Compared returns a Loader that warns if a folder differs from the loaded configuration. The warning helps users who forgot to push edited files.
func Compared(load Loader, dir string) Loader {
	return func(ctx context.Context) (*Desired, error) {
		d, err := load(ctx)
		if err != nil {
			return nil, err
		}
		var differ []string
		for _, name := range config.Files() {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				d.Notes = append(d.Notes, Note{Message: fmt.Sprintf("the folder can't be compared with the cluster's configuration: %v", err)})
				return d, nil
			}
			if !bytes.Equal(b, d.Files[name]) {
				differ = append(differ, name)
			}
		}
		if len(differ) > 0 {
			d.Notes = append(d.Notes, Note{
				Message: fmt.Sprintf("%s in %s differs from the cluster's copy, which is used", strings.Join(differ, ", "), dir),
				Remedy:  fmt.Sprintf("see: paictl config diff -p %[1]s; push it with: paictl config push -p %[1]s", hint.Quote(dir)),
			})
		}
		return d, nil
	}
}

// desire checks a configuration and builds its services. desire doesn't fetch the charts of upstream services, because each run fetches only the
// required charts.
func desire(ctx context.Context, c *config.Cluster) (*Desired, error) {
	found := config.Validate(c)
	all, about, err := catalogue.Load(ctx, c, catalogue.Options{})
	if err != nil {
		return nil, err
	}
	found = append(found, about...)
	found.Sort()
	d := &Desired{Config: c, Catalogue: all}
	rest := slices.DeleteFunc(slices.Clone(found), func(f config.Finding) bool { return f.Rule == catalogue.RuleRelease })
	if len(rest) < len(found) {
		d.unstartable = found.Err()
	}
	d.Mistakes = rest.Err()
	d.warn(about.Warnings()) // the push already reported warnings about machines
	return d, nil
}

func (d *Desired) warn(found config.Findings) {
	for _, f := range found {
		d.Notes = append(d.Notes, Note{Message: strings.Replace(f.String(), ": warning: ", ": ", 1), Remedy: f.Remedy})
	}
}

// FetchCharts fetches the missing charts of the chosen upstream services.
func (d *Desired) FetchCharts(ctx context.Context, fetcher func(*Desired) catalogue.Fetcher, chosen []*catalogue.Service) error {
	missing := slices.DeleteFunc(slices.Clone(chosen), func(s *catalogue.Service) bool { return s.Chart != nil })
	if len(missing) == 0 {
		return nil
	}
	if fetcher == nil {
		return fmt.Errorf("there is no chart of %s", strings.Join(names(missing), ", "))
	}
	found, err := d.Catalogue.FetchCharts(ctx, fetcher(d), missing)
	if err == nil {
		err = found.Err()
	}
	d.warn(found.Warnings())
	return err
}
