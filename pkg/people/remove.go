package people

import (
	"context"
	"errors"
	"fmt"

	"github.com/openpai/paictl/pkg/hint"
)

// RemoveWith removes a person whose jobs are stopped: first the person is disabled, so that no more come, and the person goes last. Where it
// fails in between, it can be repeated.
func RemoveWith(ctx context.Context, d *Directory, name string, stop func(ctx context.Context, user string) (int, error)) (stopped int, err error) {
	if err := d.Disable(ctx, name, true); err != nil && !errors.Is(err, ErrNoUser) {
		return 0, err
	} else if err == nil {
		if stopped, err = stop(ctx, name); err != nil {
			return stopped, hint.Wrap(fmt.Errorf("%s is disabled, and not removed: %w", name, err), "try again")
		}
	}
	if err := d.Remove(ctx, name); err != nil {
		return stopped, err
	}
	late, err := stop(ctx, name) // one that was submitted just before
	if err != nil {
		err = hint.Wrap(fmt.Errorf("%s is removed, and may have jobs that go on: %w", name, err), "see: paictl job list --user "+name)
	}
	return stopped + late, err
}
