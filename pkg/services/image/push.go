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

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
)

// State is the result of comparing an image with the registry's image.
type State string

// These are the states of images.
const (
	Present State = "present" // the registry has exactly this image
	Missing State = "missing" // the registry has no image of that name
	Other   State = "other"   // the registry has another image of the same name
	Pushed  State = "pushed"  // the image was sent now
)

// Result is the result of Push or Look for an image.
type Result struct {
	Item
	State State
	// Found is the digest of the registry's image. Found is "" if the image is missing in the registry.
	Found string
}

// Event is a step of a push: the start, the progress or the end of an image.
type Event struct {
	Item        Item
	N, Total    int   // the number of the image, and how many images there are
	Sent, Bytes int64 // of this image
	State       State // "" while it is being sent
}

// Pusher sends images to registries.
type Pusher struct {
	// Access defines how to connect to the registries.
	Access Access
	// Progress receives every step. Progress is never called concurrently, and may be nil.
	Progress func(Event)
	// DryRun means that Push queries the registries but sends no images.
	DryRun bool
}

// Push sends the images that are missing in the registries. Push skips an image if the registry contains an image with the same digest. Push stops at
// the first failure. A later push continues with the remaining images.
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
	defer func() { _ = img.Close() }() // opened for reading only
	if err := p.send(ctx, img, e); err != nil {
		return r, p.Access.explain(fmt.Errorf("push %s: %w", e.Item.Target, err), e.Item.Target)
	}
	r.State, r.Found = Pushed, e.Item.Digest
	return r, nil
}

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
	// Write closes the channel, even if the upload fails.
	err = remote.Write(ref, img, append(options, remote.WithProgress(updates))...)
	<-done
	return err
}

// Look asks the registry for the image of an item.
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

// open parses the reference of an image. open returns the reference, and the options for connecting to the registry.
func (a Access) open(ctx context.Context, target string) (name.Reference, []remote.Option, error) {
	ref, err := name.ParseReference(target, name.StrictValidation)
	if err != nil {
		return nil, nil, fmt.Errorf("read the name %s: %w", target, err)
	}
	return ref, []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(a.transport(ref)), remote.WithAuthFromKeychain(a.keychain()),
	}, nil
}
