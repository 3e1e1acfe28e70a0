package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openpai/paictl/pkg/bundle"
	"github.com/openpai/paictl/pkg/bundle/oci"
)

// State says what a registry has under an image's name.
type State string

// What a registry can have.
const (
	Present State = "present" // this very image
	Missing State = "missing" // nothing
	Other   State = "other"   // another image under the same name
	Pushed  State = "pushed"  // this image, as of now
)

// Result is what was found, and done, for an image.
type Result struct {
	Item
	State State
	// Found is the digest that the registry has; "" where it has none.
	Found string
}

// Event is one step of a push: an image begins, goes on, or is ready.
type Event struct {
	Item        Item
	N, Total    int   // which image of how many
	Sent, Bytes int64 // of this image
	State       State // "" while it is being sent
}

// Pusher brings images to registries.
type Pusher struct {
	// Access is how registries are reached.
	Access Access
	// Progress gets every step, from one goroutine at a time; nil for none.
	Progress func(Event)
	// DryRun asks registries what they have and sends nothing.
	DryRun bool
}

// Push sends what registries lack. Nothing is sent for an image that is there by its digest.
// The first failure ends it; what was sent stays, and a further push goes on behind it.
func (p Pusher) Push(ctx context.Context, b *bundle.Bundle, items []Item) ([]Result, error) {
	var artifacts []bundle.Artifact
	for _, i := range items {
		artifacts = append(artifacts, i.Artifact)
	}
	if err := b.VerifyArtifacts(ctx, artifacts); err != nil {
		return nil, err
	}
	var out []Result
	for n, item := range items {
		e := Event{Item: item, N: n + 1, Total: len(items)}
		r, err := p.one(ctx, b, e)
		if err != nil {
			return out, err
		}
		e.State = r.State
		p.tell(e)
		out = append(out, r)
	}
	return out, nil
}

func (p Pusher) tell(e Event) {
	if p.Progress != nil {
		p.Progress(e)
	}
}

func (p Pusher) one(ctx context.Context, b *bundle.Bundle, e Event) (Result, error) {
	r, err := p.Access.Look(ctx, e.Item)
	if err != nil || r.State == Present || p.DryRun {
		return r, err
	}
	img, err := oci.OpenArchive(b.File(e.Item.Artifact))
	if err != nil {
		return r, err
	}
	defer func() { _ = img.Close() }() // it was only read
	if err := p.send(ctx, img, e); err != nil {
		return r, p.Access.explain(fmt.Errorf("push %s: %w", e.Item.Target, err), e.Item.Target)
	}
	r.State, r.Found = Pushed, e.Item.Digest
	return r, nil
}

// send uploads an image, with its progress in bytes.
func (p Pusher) send(ctx context.Context, img v1.Image, e Event) error {
	ref, options, err := p.Access.open(ctx, e.Item.Target)
	if err != nil {
		return err
	}
	updates := make(chan v1.Update, 64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for u := range updates {
			e.Sent, e.Bytes = u.Complete, u.Total
			if u.Error == nil {
				p.tell(e)
			}
		}
	}()
	// Write closes the channel, also when it fails.
	err = remote.Write(ref, img, append(options, remote.WithProgress(updates))...)
	<-done
	return err
}

// Look asks a registry what it has under an image's name.
func (a Access) Look(ctx context.Context, item Item) (Result, error) {
	r := Result{Item: item, State: Missing}
	ref, options, err := a.open(ctx, item.Target)
	if err != nil {
		return r, err
	}
	desc, err := remote.Head(ref, options...)
	if answer, ok := errors.AsType[*transport.Error](err); ok && answer.StatusCode == http.StatusNotFound {
		return r, nil
	}
	if err != nil {
		return r, a.explain(fmt.Errorf("look for %s: %w", item.Target, err), item.Target)
	}
	r.State, r.Found = Other, desc.Digest.String()
	if r.Found == item.Digest {
		r.State = Present
	}
	return r, nil
}

// open reads a reference and how to get at its registry.
func (a Access) open(ctx context.Context, target string) (name.Reference, []remote.Option, error) {
	ref, err := name.ParseReference(target, name.StrictValidation)
	if err != nil {
		return nil, nil, fmt.Errorf("read the name %s: %w", target, err)
	}
	return ref, []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(a.transport(ref)), remote.WithAuthFromKeychain(a.keychain()),
	}, nil
}
