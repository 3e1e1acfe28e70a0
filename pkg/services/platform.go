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

// Readiness checks whether the objects of a release are ready.
type Readiness interface {
	Check(ctx context.Context, namespace, manifest string) (ready.State, error)
	// CheckAll checks many releases. CheckAll reads each kind of object only once per namespace.
	CheckAll(ctx context.Context, releases [][]ready.Target) ([]ready.State, error)
	Wait(ctx context.Context, namespace, manifest string, o ready.WaitOptions) (ready.State, error)
}

// Desired is the desired state of a cluster: a configuration and its services.
type Desired struct {
	Config *config.Cluster
	// Files are the files of the cluster's copy. Files is nil if the configuration was read from a folder.
	Files map[string][]byte
	// Revision is the revision of the cluster's copy.
	Revision  store.Revision
	Catalogue *catalogue.Catalogue
	// Notes are reported at the start of a run.
	Notes []Note
	// Mistakes describes mistakes in the configuration. With mistakes, services can be listed, inspected and stopped, but not started, and neither their
	// values nor their manifests are shown.
	Mistakes error
	// unstartable is the reason why services can't be started. Services can still be inspected, described and stopped.
	unstartable error
}

// Note is a warning about the configuration, with its remedy.
type Note struct{ Message, Remedy string }

// Loader loads a configuration with its services.
type Loader func(context.Context) (*Desired, error)

// Platform is the platform of a cluster. The methods run the commands on services.
type Platform struct {
	Client   kubernetes.Interface
	Releases release.Manager
	Ready    Readiness
	Load     Loader
	// Current returns the revision that the cluster stores, with one request. Current is nil if Load reads from a folder.
	Current func(context.Context) (store.Revision, error)
	// Fetcher returns a fetcher for the charts of upstream services. Fetcher is nil if charts can't be fetched.
	Fetcher func(*Desired) catalogue.Fetcher
	Clock   func() time.Time
	Process Process
	Log     *slog.Logger
}

// Open returns the platform of a cluster with the cluster's stored configuration. Open sends no request. Relative chart paths are relative to dir.
// dir is "" if no folder is known.
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

// Options configures a run.
type Options struct {
	// Names lists the selected services. If Names is empty, all services are selected. Except lists excluded services.
	Names, Except []string
	// Wait is how long the run waits for each service. 0 means that the run doesn't wait.
	Wait   time.Duration
	DryRun bool
	// KeepFailed leaves a failed release unchanged, so that an administrator can inspect the release. Otherwise the release is rolled back to the
	// previous revision. A release without a previous revision is removed.
	KeepFailed bool
	// Renew means that Restart also replaces the pods of services whose values didn't change.
	Renew bool
	// WithDependents means that Stop and Delete include the services that require the named services.
	WithDependents bool
	// Confirm is called before data is deleted. The run ends without changes if Confirm returns an error.
	Confirm func(context.Context, Deletion) error
	// ConfirmUpgrade is called before an upgrade makes changes. ConfirmUpgrade receives an EventPlanned for each installed service. The run ends if
	// ConfirmUpgrade returns an error.
	ConfirmUpgrade func(context.Context, []Event) error
	// Downgrade allows Upgrade to install charts of an earlier paictl, and to remove versions and fields from custom resource definitions.
	Downgrade bool
	// MaxFailures is the number of failed services after which an upgrade skips the remaining services. 0 means 1.
	MaxFailures int
	// Parallel is the maximum number of services that are processed concurrently. 0 means 8.
	Parallel int
	// Command is the command line. Again is the command line without the names of services.
	Command, Again string
	Sink           Sink
}

// These are defaults of options.
const (
	defaultParallel = 8
	defaultWait     = 5 * time.Minute
)
