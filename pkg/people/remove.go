package people

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// RemoveWith removes a person. It first disables the person, so that the person can't submit more jobs. It then stops the person's jobs, calls each
// sweep to remove the person's other data, and removes the person. Finally it stops jobs that were submitted just before, and calls each sweep again.
// If RemoveWith fails, it can be called again. If a new person gets the name while RemoveWith runs, RemoveWith doesn't change the new person or that
// person's jobs.
func RemoveWith(ctx context.Context, d *Directory, name string, stop func(ctx context.Context, user string) (int, error), sweep ...func(ctx context.Context, user string) error) (stopped int, err error) {
	p, err := d.Update(ctx, name, func(s *v1.UserSpec) error {
		s.Disabled = true
		return nil
	})
	who := types.UID("")
	switch {
	case err == nil:
		who = p.UID
		if stopped, err = stop(ctx, name); err == nil {
			err = swept(ctx, name, sweep)
		}
		if err != nil {
			return stopped, hint.Wrap(fmt.Errorf("%s is disabled, and not removed: %w", name, err), "try again")
		}
	case !errors.Is(err, ErrNoUser):
		return 0, err
	}
	if err := d.remove(ctx, name, func(u *v1.User) bool { return u.UID == who }); err != nil {
		if errors.Is(err, ErrNoUser) && d.wasRemoved(name) { // it is a repeated call, which removes the rest
			if late := swept(ctx, name, sweep); late != nil {
				return stopped, late
			}
		}
		return stopped, err
	}
	if !d.wasRemoved(name) {
		return stopped, nil // the jobs of that name belong to a new person by now
	}
	late, err := stop(ctx, name) // jobs that were submitted just before
	if err == nil {
		err = swept(ctx, name, sweep)
	}
	if err != nil {
		err = hint.Wrap(fmt.Errorf("%s is removed, but may still have running jobs or templates: %w", name, err), "see: paictl job list --user "+name)
	}
	return stopped + late, err
}

func swept(ctx context.Context, name string, sweep []func(ctx context.Context, user string) error) error {
	for _, take := range sweep {
		if err := take(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a person, and the person's password, tokens and extension. The name stays reserved.
func (d *Directory) Remove(ctx context.Context, name string) error {
	return d.remove(ctx, name, func(*v1.User) bool { return true })
}

// remove removes the person with the given name if meant returns true for the User. So it doesn't remove a later person with the same name.
func (d *Directory) remove(ctx context.Context, name string, meant func(*v1.User) bool) error {
	_, err := d.update(ctx, name, func(u *v1.User) error {
		if !meant(u) {
			return noUser(name)
		}
		u.Spec = v1.UserSpec{Name: u.Spec.Name, Disabled: true, Removed: true}
		endSessions(u)
		return nil
	})
	again := errors.Is(err, ErrNoUser) && d.wasRemoved(name)
	if err != nil && !again {
		return err
	}
	n, cleared := d.clear(ctx, name)
	if again && cleared == nil && n == 0 {
		return err
	}
	return cleared
}

func (d *Directory) wasRemoved(name string) bool {
	u := d.snapshot().taken[v1.FoldName(name)]
	return u != nil && u.Spec.Removed && u.Spec.Name == name
}
