package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/diagnose/doctor"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// open connects to the machines and to the API server. The caller must call done at the end.
func (opts *Options) open(ctx context.Context) (c *doctor.Cluster, o doctor.Options, done func(), err error) {
	done = func() {}
	c = &doctor.Cluster{Now: time.Now, Image: opts.Image, JobImage: opts.JobImage}
	o.Progress = opts.Factory.IO.Say
	o.Owner = fmt.Sprintf("%s, pid %d", prompt.Operator(), os.Getpid())
	if opts.hasFolder() {
		s, err := opts.openFolder(ctx, c)
		if err != nil {
			return nil, o, done, err
		}
		if s != nil {
			o.Machines, done = s.Options, func() { _ = s.Close() } // nothing was printed through it
			o.Machines.DryRun = !opts.Fix
		}
	}
	k, err := opts.openAPI(ctx, c, o.Machines)
	if err != nil {
		if c.Config == nil {
			done()
			return nil, o, func() {}, hint.Wrap(fmt.Errorf("found neither a configuration folder nor a cluster: %w", err), remedyOf(err))
		}
		c.NoAPI(err)
		return c, o, done, nil
	}
	if err := opts.useAPI(c, k); err != nil {
		done()
		return nil, o, func() {}, err
	}
	return c, o, done, nil
}

// hasFolder reports whether there is a configuration folder. It is the folder that the user gave, or the current folder.
func (opts *Options) hasFolder() bool {
	if opts.dirGiven {
		return true
	}
	_, err := os.Stat(filepath.Join(opts.Flags.Dir, config.LayoutFile))
	return err == nil
}

// openFolder reads the configuration folder. The session is nil if paictl doesn't manage the machines.
func (opts *Options) openFolder(ctx context.Context, c *doctor.Cluster) (*session.Session, error) {
	parsed, found, err := config.LoadReadable(opts.Flags.Dir, catalogue.CheckMachines)
	if err != nil {
		return nil, err
	}
	c.Config, c.Dir, c.Mistakes = parsed, opts.Flags.Dir, found.Errors()
	if !parsed.IsManaged() {
		return nil, nil
	}
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{ReadOnly: !opts.Fix, Reads: true, Format: "quiet"})
	if err != nil {
		return nil, err
	}
	c.Spec = s.Spec
	return s, nil
}

// openAPI connects to the API server that the flags select, or to the API server of the machines in the folder. If the current kubeconfig leads
// to another cluster, openAPI doesn't use it.
func (opts *Options) openAPI(ctx context.Context, c *doctor.Cluster, machines engine.Options) (*kube.Cluster, error) {
	if opts.Kube.Kubeconfig != "" || opts.Kube.Context != "" || c.Spec == nil {
		return kube.Open(opts.Kube)
	}
	k, err := session.MasterKubeconfig(ctx, c.Spec, machines)
	if err == nil {
		return k, nil
	}
	// No master provides a kubeconfig. Use the current kubeconfig if it leads to the same machines.
	if k, other := kube.Open(opts.Kube); other == nil && session.LeadsTo(k.Server, c.Spec) {
		return k, nil
	}
	return nil, err
}

// useAPI creates the clients that the checks use.
func (opts *Options) useAPI(c *doctor.Cluster, k *kube.Cluster) error {
	jobs, err := job.New(k)
	if err != nil {
		return err
	}
	c.Kube, c.Jobs = k, jobs
	c.Platform, err = services.Open(k, c.Dir, opts.Factory.Log)
	return err
}

// remedyOf returns a remedy for an error of the API server. It includes the remedy of the error itself, such as a list of contexts.
func remedyOf(err error) string {
	if own := hint.Of(err); own != "" {
		return own + "; or name a configuration folder with -p DIR"
	}
	return "name a configuration folder with -p DIR, or a kubeconfig with --kubeconfig"
}
