package assembly

import (
	"context"
	"errors"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
)

// newReporter returns a Reporter of the state of services. The Reporter reads published facts and the objects of services, but no Secrets.
func newReporter(o Options, cluster *kube.Cluster) *facts.Reporter {
	r := &facts.Reporter{Client: cluster.Client, Ready: ready.New(cluster.Client), Now: o.Now}
	if r.Now == nil {
		r.Now = time.Now
	}
	return r
}

func openServices(o Options, r *facts.Reporter) func(context.Context) (*state.Report, error) {
	return func(ctx context.Context) (*state.Report, error) {
		out, err := r.Report(ctx)
		if err == nil || errors.Is(err, facts.ErrNone) {
			return out, err
		}
		o.Log.WarnContext(ctx, "the state of services can't be read", "error", err.Error())
		return nil, &job.UnavailableError{Err: err}
	}
}
