package protocol

import "github.com/openpai/paictl/pkg/config/strictyaml"

// Draft describes a new job with one role.
type Draft struct {
	Name  string
	Role  string
	Image string
	// ImageNote is a comment that Write puts above the image.
	ImageNote string
	Commands  []string
	// Exec is a program with its arguments, which runs instead of Commands.
	Exec           []string
	Parameters     map[string]string
	Instances      int
	GPU            int
	CPU            float64
	MemoryMB       int
	VirtualCluster string // "" leaves the choice to the server
	RetryCount     int
	MaxDurationSec int // 0 means no limit
	Storages       []string
}

// DefaultDraft returns a draft of a small job that can run on any machine.
func DefaultDraft() Draft {
	return Draft{Name: "hello", Role: "main", Image: "ubuntu:24.04", Commands: []string{"echo hello from task $PAI_TASK_INDEX"},
		Instances: 1, CPU: 1, MemoryMB: 1024, VirtualCluster: "default"}
}

// draftFile is the job file for a draft. Its fields are in the order of the keys in the file.
type draftFile struct {
	ProtocolVersion int                  `yaml:"protocolVersion"`
	Name            string               `yaml:"name"`
	Type            string               `yaml:"type"`
	RetryCount      int                  `yaml:"jobRetryCount"`
	Prerequisites   []draftImage         `yaml:"prerequisites"`
	Parameters      map[string]string    `yaml:"parameters"`
	TaskRoles       map[string]draftRole `yaml:"taskRoles"`
	Defaults        draftDefaults        `yaml:"defaults,omitempty"`
	Extras          draftExtras          `yaml:"extras,omitempty"`
}

type draftImage struct {
	Name string `yaml:"name"`
	Type string `yaml:"type"`
	URI  string `yaml:"uri"`
}

type draftRole struct {
	Instances   int            `yaml:"instances"`
	DockerImage string         `yaml:"dockerImage"`
	Resources   draftResources `yaml:"resourcePerInstance"`
	Commands    []string       `yaml:"commands,omitempty"`
	Exec        []string       `yaml:"exec,omitempty"`
}

type draftResources struct {
	CPU      any `yaml:"cpu"`
	MemoryMB int `yaml:"memoryMB"`
	GPU      int `yaml:"gpu"`
}

type draftDefaults struct {
	VirtualCluster string `yaml:"virtualCluster,omitempty"`
}

type draftExtras struct {
	MaxDurationSec int            `yaml:"maxDurationSec,omitempty"`
	Storages       []draftStorage `yaml:"storages,omitempty"`
}

type draftStorage struct {
	Name string `yaml:"name"`
}

// Write returns the draft as a job file with comments. It doesn't check the draft; use Parse on the result.
func (d Draft) Write() ([]byte, error) {
	f := draftFile{
		ProtocolVersion: 2, Name: d.Name, Type: "job", RetryCount: d.RetryCount,
		Prerequisites: []draftImage{{Name: "image", Type: typeImage, URI: d.Image}}, Parameters: d.Parameters,
		TaskRoles: map[string]draftRole{d.Role: {Instances: d.Instances, DockerImage: "image",
			Resources: draftResources{CPU: whole(d.CPU), MemoryMB: d.MemoryMB, GPU: d.GPU}, Commands: d.Commands, Exec: d.Exec}},
		Defaults: draftDefaults{VirtualCluster: d.VirtualCluster},
		Extras:   draftExtras{MaxDurationSec: d.MaxDurationSec},
	}
	if f.Parameters == nil {
		f.Parameters = map[string]string{}
	}
	for _, name := range d.Storages {
		f.Extras.Storages = append(f.Extras.Storages, draftStorage{Name: name})
	}
	note := d.ImageNote
	if note != "" {
		note = "\n" + note
	}
	role := strictyaml.Path{"taskRoles", d.Role}.String() + "."
	return strictyaml.Encode(f, strictyaml.Comments{
		"":                           "A job for paictl. All fields: docs/job-protocol.md, and \"paictl job schema\".",
		"name":                       "Unique among your jobs.",
		"jobRetryCount":              "Retries after failures of unknown cause. Failures of the platform don't count.",
		"prerequisites":              "Images, and scripts and data that commands may name. An image of a private registry has\nauth: {username, password: <% $secrets.NAME %>, registryuri}." + note,
		"parameters":                 "Values that commands use as <% $parameters.NAME %>. Passwords go into secrets: beside it,\nand are named <% $secrets.NAME %>.",
		"taskRoles":                  "Task roles. Each task is a container.",
		role + "resourcePerInstance": "Of one task.",
		role + "commands":            "Lines of a shell script. The environment has PAI_TASK_INDEX, MASTER_ADDR, RANK and others\n(docs/job-runtime.md).",
		"defaults.virtualCluster":    "The virtual cluster whose GPUs the job uses; \"paictl vc list\" shows them.",
		"extras.storages":            "Mounted at /mnt/NAME.",
	})
}

// whole formats a number without unnecessary decimals: 1, not 1.0.
func whole(n float64) any {
	if n == float64(int(n)) {
		return int(n)
	}
	return n
}
