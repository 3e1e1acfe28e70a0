package services

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

// Readiness reports whether the objects of a release work.
type Readiness interface {
	Check(ctx context.Context, namespace, manifest string) (ready.State, error)
	// CheckAll checks many releases with one read of the cluster.
	CheckAll(ctx context.Context, releases [][]ready.Target) ([]ready.State, error)
	Wait(ctx context.Context, namespace, manifest string, o ready.WaitOptions) (ready.State, error)
}

// Desired is the desired state of the runs: a configuration and its services.
type Desired struct {
	Config *config.Cluster
	// Files are the files of the cluster's copy; nil if the configuration is from a folder.
	Files map[string][]byte
	// Revision is the revision of the cluster's copy.
	Revision  store.Revision
	Catalogue *catalogue.Catalogue
	// Notes are reported at the start of a run.
	Notes []Note
	// Mistakes are mistakes in the configuration: the services can be inspected and stopped, but not started or described.
	Mistakes error
	// unstartable is the reason why no service can be started, though all can be inspected and stopped.
	unstartable error
}

// Note is a warning.
type Note struct{ Message, Remedy string }

// Loader returns the configuration with its services.
type Loader func(context.Context) (*Desired, error)

// Platform is a cluster for runs.
type Platform struct {
	Client   kubernetes.Interface
	Releases release.Manager
	Ready    Readiness
	Load     Loader
	// Current returns the revision that the cluster stores now, with one request; nil if Load doesn't query a cluster.
	Current func(context.Context) (store.Revision, error)
	// Fetcher fetches the charts of a configuration's upstream services; nil if they can't be fetched.
	Fetcher func(*Desired) catalogue.Fetcher
	Clock   func() time.Time
	Process Process
	Log     *slog.Logger
}

// Open returns the services of a cluster, with the configuration that the cluster stores. It doesn't send a request. dir is the folder that
// relative paths of charts start from, or "" if no folder is known.
func Open(c *kube.Cluster, dir string, log *slog.Logger) (*Platform, error) {
	releases, err := release.NewHelm(c, log)
	if err != nil {
		return nil, err
	}
	stored := store.New(c.Client)
	return &Platform{
		Client: c.Client, Releases: releases, Ready: ready.New(c.Client), Load: FromCluster(stored, dir), Current: stored.Current,
		Clock: time.Now, Process: ThisProcess(), Log: log,
	}, nil
}

// Options of a run.
type Options struct {
	// Names are the selected services, empty for all; Except are the excluded services.
	Names, Except []string
	// Wait is the maximum wait for each service; 0 means not to wait.
	Wait   time.Duration
	DryRun bool
	// KeepFailed leaves a failed release unchanged, so that the administrator can inspect it. Otherwise it is rolled back to its
	// last revision, or removed if there is no such revision.
	KeepFailed bool
	// Renew makes Restart also replace the pods of services whose values didn't change.
	Renew bool
	// WithDependents makes Stop and Delete include the services that require the named services.
	WithDependents bool
	// Confirm is called before data is deleted; if it returns an error, the run ends without changes.
	Confirm func(context.Context, Deletion) error
	// ConfirmUpgrade is called before an upgrade changes anything, with an EventPlanned for each installed service; if it returns an
	// error, the run ends.
	ConfirmUpgrade func(context.Context, []Event) error
	// Downgrade allows Upgrade to install charts of an earlier paictl, and definitions of kinds to lose versions and fields.
	Downgrade bool
	// MaxFailures is how many services may fail to upgrade before the remaining services are skipped; 0 means 1.
	MaxFailures int
	// Parallel is the maximum number of services that are processed at a time; 0 means 8.
	Parallel int
	// Command is the command line; Again is the same without the names of services.
	Command, Again string
	Sink           Sink
}

// Defaults of options.
const (
	defaultParallel = 8
	defaultWait     = 5 * time.Minute
)
