package support

import (
	"context"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/diagnose/doctor"
	"github.com/openpai/paictl/pkg/diagnose/support"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/status"
)

// reports returns the reports of the archive that contain the output of other commands, as JSON.
func (opts *BundleOptions) reports(src support.Sources, platform *services.Platform) []support.Report {
	out := []support.Report{{
		Name: "doctor", What: "The findings of \"paictl doctor\", without the checks that start test pods.",
		Ask: func(ctx context.Context) (any, error) { return opts.doctor(ctx, src, platform) },
	}}
	if src.Cluster == nil && (!opts.DryRun || src.Spec == nil) { // a dry run doesn't query the masters for its address
		return out
	}
	return append(out, support.Report{
		Name: "status", What: "The output of \"paictl status\": the whole model.",
		Ask: func(ctx context.Context) (any, error) { return opts.status(ctx, src) },
	})
}

func (opts *BundleOptions) status(ctx context.Context, src support.Sources) (*status.Cluster, error) {
	follower, err := connection.Follow(src.Cluster, opts.Factory.Log)
	if err != nil {
		return nil, err
	}
	return follower.Once(ctx)
}

// doctor runs the checks of the doctor that create no objects, because a support bundle must not change the cluster.
func (opts *BundleOptions) doctor(ctx context.Context, src support.Sources, platform *services.Platform) (*doctor.Report, error) {
	c := &doctor.Cluster{Config: src.Config, Dir: src.Folder, Spec: src.Spec, Kube: src.Cluster, Platform: platform, Now: time.Now}
	if slices.Contains(opts.Without, support.PartMachines) {
		c.Spec = nil
	}
	if src.ClusterErr != nil {
		c.NoAPI(src.ClusterErr)
	} else {
		jobs, err := job.New(src.Cluster)
		if err != nil {
			return nil, err
		}
		c.Jobs = jobs
	}
	checks := slices.DeleteFunc(doctor.Checks(), func(k *doctor.Check) bool { return k.Needs&doctor.Pods != 0 || k.Group == doctor.EndToEnd })
	o := doctor.Options{Checks: checks, Machines: src.Run, Owner: opts.command}
	o.Machines.DryRun = true
	return doctor.Run(ctx, c, o)
}
