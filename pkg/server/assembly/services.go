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

// openServices returns a function that reads the state of services from the published facts, and from their objects. It reads no Secret.
func openServices(o Options, cluster *kube.Cluster) func(context.Context) (*state.Report, error) {
	r := &facts.Reporter{Client: cluster.Client, Ready: ready.New(cluster.Client), Now: o.Now}
	if r.Now == nil {
		r.Now = time.Now
	}
	return func(ctx context.Context) (*state.Report, error) {
		out, err := r.Report(ctx)
		if err == nil || errors.Is(err, facts.ErrNone) {
			return out, err
		}
		o.Log.WarnContext(ctx, "the state of services can't be read", "error", err.Error())
		return nil, &job.UnavailableError{Err: err}
	}
}
