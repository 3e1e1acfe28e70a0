package connection

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// Cells returns the virtual clusters in the configuration that a cluster stores. This configuration may be newer than the configuration of the
// scheduler, and it exists before the scheduler runs.
func Cells(ctx context.Context, c kubernetes.Interface) (cell.Config, error) {
	s := store.New(c)
	s.SecretPaths, s.Checks = catalogue.SecretPaths, []config.Check{catalogue.Check}
	stored, _, err := s.Load(ctx)
	if err != nil {
		return cell.Config{}, err
	}
	cells, found := catalogue.SchedulerConfig(stored)
	if err := found.Err(); err != nil {
		return cell.Config{}, hint.Wrap(err, "correct it with: paictl config push -p DIR")
	}
	return cells, nil
}

// configured returns a function that reads the virtual clusters with Cells.
func configured(c kubernetes.Interface) func(context.Context) ([]api.VirtualCluster, error) {
	return func(ctx context.Context) ([]api.VirtualCluster, error) {
		cells, err := Cells(ctx, c)
		if err != nil {
			return nil, err
		}
		return vc.Configured(cells), nil
	}
}
