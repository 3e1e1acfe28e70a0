package job

import (
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Request describes a job to submit.
type Request struct {
	File *protocol.Job
	// User is the owner of the job. Group is the group whose quota the job counts against.
	User, Group string
	// Code is a folder that is already in the cluster, or nil.
	Code *Code
}

// Code describes a folder that is sent with a job by the checksum of its archive and its size in bytes.
type Code struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// Summary holds the name of a job and the resources that it requests.
type Summary struct {
	User           string `json:"user"`
	Name           string `json:"name"`
	Framework      string `json:"framework"`
	VirtualCluster string `json:"virtualCluster"`
	Tasks          int    `json:"tasks"`
	GPUs           int    `json:"gpus"`
}

// Prepared is a checked job that can be submitted.
type Prepared struct {
	Summary
	Objects *render.Objects
}

// Workspace is the path of the job's code in a task's container.
const Workspace = spec.Home + "/workspace"

// Prepare checks a job against the facts about a cluster, and renders its objects. It doesn't send requests. If the job file has mistakes, Prepare
// returns them as findings, and Prepared is nil.
func (c *Client) Prepare(f *Facts, r Request) (*Prepared, strictyaml.Findings, error) {
	o := render.Options{User: r.User, Group: r.Group, Namespace: c.Namespace, Cluster: f.Cluster, Now: c.Now()}
	if r.Code != nil {
		if !f.AcceptsCode() {
			return nil, nil, ErrNoCode
		}
		o.Code = r.Code.At(f.Configuration.CodeURL)
	}
	objects, found := render.Render(r.File, o)
	if objects == nil {
		return nil, found, nil
	}
	p := &Prepared{Objects: objects, Summary: Summary{User: objects.Framework.Labels[v1.LabelUser], Name: r.File.Name,
		Framework: objects.Framework.Name, VirtualCluster: r.File.VirtualCluster, Tasks: r.File.Tasks(), GPUs: r.File.GPUs()}}
	return p, found, nil
}

// ErrNoCode is returned if the cluster can't store folders of code.
var ErrNoCode = hint.Errorf("update it: paictl service start -n job-controller", "the job controller of this cluster doesn't accept code")

// AcceptsCode reports whether the cluster accepts folders of code with jobs.
func (f *Facts) AcceptsCode() bool { return f.Configuration.CodeURL != "" }

// At returns the code in the form that tasks read. The tasks download it from an address below url.
func (c *Code) At(url string) *spec.Code {
	return &spec.Code{URL: strings.TrimSuffix(url, "/") + "/" + c.SHA256, SHA256: c.SHA256, Size: c.Size, Dir: Workspace}
}

// Offer lists the resources that a job may request from a cluster.
type Offer struct {
	// TakesCode reports whether the cluster accepts folders of code with jobs.
	TakesCode bool `json:"takesCode"`
	// SKUs contains the share of a machine that goes with one cell, by the type of the GPU or CPU cell.
	SKUs map[string]render.SKU `json:"skus,omitempty"`
}

// Name identifies a job.
type Name struct {
	User string `json:"user"`
	Name string `json:"name"`
}
