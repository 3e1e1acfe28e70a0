package engine

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/shell"
)

// Copy describes the ConfigMap with the cluster's own copy of the configuration. Services are started with its content.
type Copy struct {
	Namespace, Name string
	// Compare returns the revision of the copy, and the names of files in the folder that differ from the copy.
	Compare func(configMap []byte) (revision int, files []string, err error)
	// Push is the command that copies the folder to the cluster.
	Push string
}

const phaseCopy = "copy"

// WarnAboutCopy warns at the end of a run if the cluster's copy of the configuration differs from the configuration of the run. Services use the copy, and
// an operator may forget to push a changed layout. Without a copy, WarnAboutCopy doesn't warn, because such a cluster has no services. A failed comparison
// doesn't fail the run.
func (r *Run) WarnAboutCopy(ctx context.Context) {
	c, n := r.Opts.Copy, r.Leader
	if c == nil || n == nil || r.Host(n) == nil || r.IsAside(n) {
		return
	}
	res, err := r.Read(ctx, n, phaseCopy, "read", r.Spec.SelfAPI(n)+copyScript(c))
	if err != nil || len(bytes.TrimSpace(res.Stdout)) == 0 {
		return
	}
	revision, files, err := c.Compare(res.Stdout)
	if err != nil || len(files) == 0 {
		return
	}
	r.Emit(Event{Kind: EventWarning,
		Message: fmt.Sprintf("the cluster's copy of the configuration (revision %d) differs: %s; services still use the copy", revision, strings.Join(files, ", ")),
		Hint:    c.Push})
}

// copyScript returns a script that prints the ConfigMap. The script prints nothing if the ConfigMap is missing or the API doesn't respond.
func copyScript(c *Copy) string {
	return fmt.Sprintf("self get configmap -n %s %s --ignore-not-found --request-timeout=10s -o json || :\n", shell.Quote(c.Namespace), shell.Quote(c.Name))
}
