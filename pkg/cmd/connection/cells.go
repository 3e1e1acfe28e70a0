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

// Cells reads the virtual clusters from the configuration that a cluster stores. It may be newer than the scheduler's
// configuration, and exists before the scheduler runs.
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

// configured returns a function that lists the virtual clusters of Cells.
func configured(c kubernetes.Interface) func(context.Context) ([]api.VirtualCluster, error) {
	return func(ctx context.Context) ([]api.VirtualCluster, error) {
		cells, err := Cells(ctx, c)
		if err != nil {
			return nil, err
		}
		return vc.Configured(cells), nil
	}
}
