package login

import (
	"context"
	"errors"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/client/browser"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// enter signs in with the requested method. Without a request, it uses a method that works with this terminal and the server.
func (opts *Options) enter(ctx context.Context, s *client.Server, t *target) (name string, pair *client.Pair, err error) {
	io := opts.Factory.IO
	switch {
	case opts.Device:
		pair, err = opts.device(ctx, s)
	case opts.Password, opts.User != "", !io.CanPrompt():
		return opts.password(ctx, s, t)
	case !opts.NoBrowser && browser.Available(opts.Factory.Getenv):
		pair, err = opts.browser(ctx, s)
	default:
		methods, err := s.SignInMethods(ctx)
		if err != nil || methods.Password {
			return opts.password(ctx, s, t) // an older server supports only passwords
		}
		pair, err = opts.device(ctx, s)
		if err != nil {
			return "", nil, opts.refused(t, err)
		}
	}
	if err != nil {
		return "", nil, opts.refused(t, err)
	}
	me, err := s.As(pair.Access).WhoAmI(ctx)
	if err != nil {
		return "", nil, errors.Join(err, s.Revoke(context.WithoutCancel(ctx), pair.Refresh)) // otherwise the tokens would remain valid, but unused
	}
	return me.Name, pair, nil
}

func (opts *Options) refused(t *target, err error) error {
	if refused, ok := errors.AsType[*client.RefusedError](err); ok {
		return hint.Errorf("try again", "%s refuses the sign-in: %w", t.url.Host, refused)
	}
	return err
}

func (opts *Options) password(ctx context.Context, s *client.Server, t *target) (string, *client.Pair, error) {
	name, password, err := opts.ask(t)
	if err != nil {
		return "", nil, err
	}
	pair, err := s.Password(ctx, name, password)
	if refused, ok := errors.AsType[*client.RefusedError](err); ok {
		return "", nil, hint.Errorf("try again; an administrator sets another password with: paictl user passwd "+name, "%s refuses the sign-in as %s: %w", t.url.Host, name, refused)
	}
	return name, pair, err
}

func (opts *Options) browser(ctx context.Context, s *client.Server) (*client.Pair, error) {
	io := opts.Factory.IO
	return browser.SignIn(ctx, s, func(ctx context.Context, address string) error {
		io.Say("Sign in with your browser. If it doesn't open, open this address in one on this machine:\n  %s", address)
		if err := opts.Open(ctx, address); err != nil {
			io.Say("The browser could not be opened: %v", err)
		}
		return ctx.Err()
	})
}

func (opts *Options) device(ctx context.Context, s *client.Server) (*client.Pair, error) {
	io := opts.Factory.IO
	return browser.Device(ctx, s, func(d *api.Device) {
		io.Say("Open %s in a browser on any machine, and type this code there:\n  %s\nor, where you are signed in: paictl token approve %s", d.VerificationURI, d.UserCode, d.UserCode)
	}, opts.Wait)
}
