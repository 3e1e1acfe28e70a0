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

// file is the file's name for the server: its local path isn't the server's business.
const file = "job.yaml"

// Request is a job file for the server.
type Request struct {
	// File is the local name of the file.
	File string
	Text []byte
	// Reported are the findings of the local parser. The server reports them as well; Check leaves them out.
	Reported strictyaml.Findings
	// Group is the group whose quota the job counts against.
	Group string
	// Code is a folder that has been sent to the cluster, or nil.
	Code *job.Code
	// ClonedFrom is the name of the job that this one was cloned from, or "".
	ClonedFrom string
}

// submission returns the submission of a request.
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

// Check lets the server check job files against the cluster's offer to the signed-in user. It leaves out findings that have been
// reported. If no finding is an error, the list has one entry for each request; with outlook, it reports whether the jobs would start now.
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

// mistakes returns the server's findings in a job file.
func mistakes(err error) (strictyaml.Findings, bool) {
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusBadRequest && e.Body.Code == codeProtocol && len(e.Body.Findings) > 0 {
		return e.Body.Findings, true
	}
	return nil, false
}

// here returns findings that haven't been reported, with the local name of the file.
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

// Submit submits a job. If the response is lost, it sends the request again, with a key that lets the server recognize it.
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
