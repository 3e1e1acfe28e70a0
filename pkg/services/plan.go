package services

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/release"
)

// planStart reports the changes of a start without making them.
func (r *run) planStart(ctx context.Context, chosen []*catalogue.Service) error {
	if err := r.unmoved(ctx, chosen); err != nil {
		return err
	}
	if err := r.reachable(chosen); err != nil {
		return err
	}
	if err := r.sameCharts(ctx, chosen); err != nil {
		return err
	}
	if err := r.nodeLabels(ctx, chosen); err != nil {
		return err
	}
	plans, failed := r.plans(ctx, chosen)
	for i, s := range chosen {
		if failed[i] == nil {
			r.plan(s.Name, plans[i])
		}
	}
	return errors.Join(failed...)
}

// plans returns the plan of each service. If a plan can't be made, plans returns an error for the service.
func (r *run) plans(ctx context.Context, chosen []*catalogue.Service) ([]release.Plan, []error) {
	plans := make([]release.Plan, len(chosen))
	index := make([]int, len(chosen))
	for i := range index {
		index[i] = i
	}
	failed := make([]error, len(chosen)) // a failure of one service doesn't affect the others
	_ = each(index, r.o.Parallel, func(i int) error {
		plans[i], failed[i] = r.planOne(ctx, chosen[i])
		return nil
	})
	return plans, failed
}

func (r *run) planOne(ctx context.Context, s *catalogue.Service) (release.Plan, error) {
	var first []release.Change
	if want := credentials(s); want != nil {
		change, have, err := r.secretChange(ctx, want)
		if err != nil {
			return release.Plan{}, err
		}
		s.SetCredentialsRevision(plannedRevision(change, have))
		if change != nil {
			first = append(first, *change)
		}
	}
	p, err := r.Releases.Plan(ctx, r.request(s))
	if err != nil {
		return release.Plan{}, err // the error names the service
	}
	p.Changes = append(first, p.Changes...)
	return p, nil
}

// plannedRevision returns the revision of the Secret, or "(new)" if the run would change the Secret.
func plannedRevision(change *release.Change, have *corev1.Secret) string {
	if change != nil {
		return "(new)"
	}
	return have.Annotations[annotationRevision]
}
