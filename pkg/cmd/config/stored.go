package config

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/iostreams"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// stored is the configuration in one cluster, as commands open it.
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
	s.SecretPaths, s.Checks = catalogue.SecretPaths, []config.Check{catalogue.Check}
	return &stored{s, c}, nil
}

// operator is who pushes, for the history: user@host. With sudo it is the person, not root.
func operator() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if person := os.Getenv("SUDO_USER"); name == "root" && person != "" {
		name = person
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// confirm asks a yes-or-no question; --yes answers it.
func confirm(io *iostreams.IOStreams, yes bool, what, question string) error {
	if yes {
		return nil
	}
	if !io.CanPrompt() {
		return cmdutil.Usagef("%s must be confirmed and there is no terminal to ask at: add --yes", what)
	}
	for {
		fmt.Fprintf(io.Err, "%s [yes/no] ", question)
		answer, err := prompt.Line(io.In)
		if err != nil {
			return err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return nil
		case "n", "no":
			return hint.Errorf("nothing was changed", "%s was not confirmed", what)
		}
	}
}

// writeChanges writes diffs for a person: what differs, and of secrets that they do.
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

// changedFiles lists the names, for a message.
func changedFiles(changes []store.FileChange) string {
	var names []string
	for _, c := range changes {
		names = append(names, c.File)
	}
	return strings.Join(names, ", ")
}

// completeRevisions completes the numbers of the revisions that there are.
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
