package config

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// stored is a connection to the configuration that a cluster stores.
type stored struct {
	*store.Store
	cluster *kube.Cluster
}

func openStored(o kube.Options) (*stored, error) {
	c, err := kube.Open(o)
	if err != nil {
		return nil, err
	}
	s := store.New(c.Client)
	s.SecretPaths, s.Checks = catalogue.SecretPaths, []config.Check{services.Check}
	return &stored{s, c}, nil
}

// publish compares the services with the pushed configuration, and stores the result for programs that can't read releases, such as pai-server.
// After an error, the push remains valid.
func (s *stored) publish(ctx context.Context, f *cmdutil.Factory, command string) {
	p, err := services.Open(s.cluster, "", f.Log)
	if err == nil {
		err = p.Publish(ctx, command)
	}
	if err != nil {
		f.IO.Say("warning: for people who signed in, the configuration of services is unknown until the next run of \"paictl service start\": %v", s.cluster.Explain(err))
	}
}

// writeChanges prints the changes as diffs. For a secret, it prints only that the secret has changed.
func writeChanges(w io.Writer, changes []store.FileChange) error {
	for _, c := range changes {
		if _, err := io.WriteString(w, c.Diff); err != nil {
			return err
		}
		for _, s := range c.Secrets {
			if _, err := fmt.Fprintf(w, "%s: %s %s (secret)\n", c.File, s.Field, s.Action); err != nil {
				return err
			}
		}
	}
	return nil
}

// changedFiles returns the names of the changed files, separated by commas.
func changedFiles(changes []store.FileChange) string {
	var names []string
	for _, c := range changes {
		names = append(names, c.File)
	}
	return strings.Join(names, ", ")
}

// completeRevisions completes the numbers of the existing revisions.
func completeRevisions(ctx context.Context, o kube.Options) []string {
	s, err := openStored(o)
	if err != nil {
		return nil
	}
	history, err := s.History(ctx)
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range history {
		out = append(out, fmt.Sprintf("%d\t%s %s", r.Number, r.By, r.Message))
	}
	return out
}
