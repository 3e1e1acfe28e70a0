package services

import (
	"context"
	"strings"
	"sync"
)

// waitsError means that a name was skipped because a prerequisite failed.
type waitsError struct{ on []string }

func (e *waitsError) Error() string { return "waits for " + strings.Join(e.on, ", ") }

// walk calls do for every name after the name's prerequisites, which needs returns. At most parallel calls run at a time. If a prerequisite failed,
// walk skips the name, and the name's error is a *waitsError. The result maps names to errors. If ctx ends, names that weren't reached have the cause
// of ctx as their error.
func walk(ctx context.Context, names []string, needs func(string) []string, parallel int, do func(context.Context, string) error) map[string]error {
	type outcome struct {
		done chan struct{}
		err  error
	}
	all := map[string]*outcome{}
	for _, n := range names {
		all[n] = &outcome{done: make(chan struct{})}
	}
	room := make(chan struct{}, max(parallel, 1))
	one := func(name string) error {
		var failed []string
		for _, need := range needs(name) {
			before, ok := all[need]
			if !ok {
				continue
			}
			select {
			case <-before.done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if before.err != nil {
				failed = append(failed, need)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(failed) > 0 {
			return &waitsError{on: failed}
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return do(ctx, name)
	}
	var wg sync.WaitGroup
	for name, o := range all {
		wg.Go(func() {
			defer close(o.done)
			o.err = one(name)
		})
	}
	wg.Wait()
	errs := map[string]error{}
	for name, o := range all {
		if o.err != nil {
			errs[name] = o.err
		}
	}
	return errs
}

// each calls do for every item, with at most parallel calls at a time. each returns the first error in the order of the items.
func each[T any](items []T, parallel int, do func(T) error) error {
	errs := make([]error, len(items))
	room := make(chan struct{}, max(parallel, 1))
	var wg sync.WaitGroup
	for i, item := range items {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			errs[i] = do(item)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
