package app

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/job"
)

// rememberTime limits how long a request waits until its response is stored.
const rememberTime = 5 * time.Second

// idempotent calls submit for a new submission. For a repeated key, it returns the outcome of the earlier submission.
func (p *Prepared) idempotent(ctx context.Context, o SubmitOptions, submit func() (job.Outcome, error)) (job.Outcome, error) {
	person, keys := p.actions.caller.person, p.actions.app.Keys
	if o.Key == "" || person == nil {
		return submit()
	}
	digest, err := p.digest(o)
	if err != nil {
		return "", err
	}
	claim, err := keys.Claim(ctx, person.Name, person.UID, o.Key, digest)
	if err != nil {
		return "", err
	}
	if claim.Answer != "" {
		return job.Outcome(claim.Answer), nil
	}
	outcome, err := submit()
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), rememberTime)
	defer cancel()
	switch {
	case err == nil:
		_ = keys.Done(after, claim, string(outcome)) // if that fails, the job itself records the key
	case Meaning(err).Status < http.StatusInternalServerError:
		_ = keys.Release(after, claim) // if that fails, the key can't be used until it is forgotten
	}
	return outcome, err
}

// digest returns a hash of the fields of a submission, which detects different submissions with the same key.
func (p *Prepared) digest(o SubmitOptions) (sum [sha256.Size]byte, err error) {
	code := ""
	if p.request.Code != nil {
		code = p.request.Code.SHA256
	}
	data, err := json.Marshal([]any{p.request.Text, p.request.Group, code, p.request.ClonedFrom, o.Replace, o.SkipEnded, slices.Concat([]string{}, o.After)})
	return sha256.Sum256(data), err
}
