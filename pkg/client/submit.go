package client

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// file is the name of the job file for the server, which doesn't need to know the local path.
const file = "job.yaml"

// Request is a job file to check or submit.
type Request struct {
	// File is the local name of the file.
	File string
	Text []byte
	// Reported lists the findings of the local parser. The server reports them, too, so Check leaves them out.
	Reported strictyaml.Findings
	// Group is the group whose quota the job uses.
	Group string
	// Code is the code folder that was sent to the cluster for this job, or nil.
	Code *job.Code
	// ClonedFrom is the name of the original if this job is a clone, or "".
	ClonedFrom string
}

// submission converts a request to the body of an API request.
func submission(r *Request) api.Submission {
	s := api.Submission{File: file, Text: string(r.Text), Group: r.Group}
	if r.Code != nil {
		s.Code = &api.Code{SHA256: r.Code.SHA256, Size: r.Code.Size}
	}
	if r.ClonedFrom != "" {
		s.ClonedFrom = &api.ClonedFrom{Job: r.ClonedFrom}
	}
	return s
}

// answer is the server's response to a submission.
type answer struct {
	api.Checked
	Outcome job.Outcome `json:"outcome,omitempty"`
}

// Check makes the server check job files against the resources that the signed-in user may request. It leaves out findings that the local parser
// has reported. If no finding is an error, the list has one entry for each request. With outlook, each entry also says whether the job would
// start now.
func (c *Jobs) Check(ctx context.Context, all []Request, outlook bool) ([]api.Checked, strictyaml.Findings, error) {
	var out []api.Checked
	query := url.Values{"check": {"true"}}
	if outlook {
		query.Set("outlook", "true")
	}
	var findings strictyaml.Findings
	for i := range all {
		r := &all[i]
		q, err := post(api.Prefix+"/jobs", query, submission(r))
		if err != nil {
			return nil, nil, err
		}
		q.again = true
		checked := answer{}
		err = c.ask(ctx, q, &checked)
		found, wrong := mistakes(err)
		if err != nil && !wrong {
			return nil, nil, explained(err)
		}
		findings = append(findings, here(r, append(found, checked.Findings...))...)
		out = append(out, checked.Checked)
	}
	return out, findings, nil
}

// mistakes returns the findings in a job file that the server returned as an error. ok is false for other errors.
func mistakes(err error) (strictyaml.Findings, bool) {
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusBadRequest && e.Body.Code == codeProtocol && len(e.Body.Findings) > 0 {
		return e.Body.Findings, true
	}
	return nil, false
}

// here returns the findings that haven't been reported yet, with the local name of the file.
func here(r *Request, found strictyaml.Findings) strictyaml.Findings {
	var out strictyaml.Findings
	for _, f := range found {
		if f.File == file {
			f.File = r.File
		}
		if !slices.Contains(r.Reported, f) {
			out = append(out, f)
		}
	}
	return out
}

// Submit submits a job. If the response is lost, Submit repeats the request with the same idempotency key, so that the server doesn't create a
// second job.
func (c *Jobs) Submit(ctx context.Context, r *Request, o job.SubmitOptions) (job.Outcome, error) {
	s := submission(r)
	s.DryRun, s.Replace, s.SkipEnded, s.Planned = o.DryRun, o.Replace, o.SkipEnded, o.Planned
	for _, a := range o.After {
		if a.Ended {
			return "", errors.New("submit: After with Ended must be set in the job file")
		}
		s.After = append(s.After, a.Job)
	}
	q, err := post(api.Prefix+"/jobs", nil, s)
	if err != nil {
		return "", err
	}
	if c.inside == nil { // no answer is lost inside
		q.header.Set(api.IdempotencyKey, rand.Text())
	}
	q.again = true
	out := answer{}
	err = c.ask(ctx, q, &out)
	if found, wrong := mistakes(err); wrong {
		return "", here(r, found)
	}
	return out.Outcome, explained(err)
}
