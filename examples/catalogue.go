package examples

import (
	"embed"
	"fmt"

	"gopkg.in/yaml.v3"
)

//go:embed jobs/hello.yaml jobs/sweep.yaml catalogue/*.yaml
var jobs embed.FS

// Template is a job file that every cluster offers as a job template.
type Template struct {
	// Name is the name of the template, and the name of the job in the file. Summary is one line.
	Name, Summary string
	// Category is one word: start, data, training, tools or serving.
	Category string
	Tags     []string
	// Job is the job file. Secrets that the user must choose are masked.
	Job string
}

// Templates returns the catalogue of job templates. The templates for beginners come first.
func Templates() ([]Template, error) {
	list := []struct {
		file, category string
		tags           []string
	}{
		{"jobs/hello.yaml", "start", nil},
		{"jobs/sweep.yaml", "start", []string{"sweep"}},
		{"catalogue/download.yaml", "data", []string{"storage"}},
		{"catalogue/pytorch-ddp.yaml", "training", []string{"multi-node", "pytorch"}},
		{"catalogue/deepspeed.yaml", "training", []string{"multi-node", "pytorch"}},
		{"catalogue/horovod.yaml", "training", []string{"mpi", "multi-node"}},
		{"catalogue/tensorflow.yaml", "training", []string{"multi-node", "tensorflow"}},
		{"catalogue/jax.yaml", "training", []string{"jax", "multi-node"}},
		{"catalogue/ray.yaml", "training", []string{"multi-node", "ray"}},
		{"catalogue/jupyter.yaml", "tools", []string{"notebook", "pytorch"}},
		{"catalogue/tensorboard.yaml", "tools", []string{"storage", "tensorflow"}},
		{"catalogue/vllm.yaml", "serving", []string{"llm"}},
	}
	out := make([]Template, len(list))
	for i, one := range list {
		job, err := jobs.ReadFile(one.file)
		if err != nil {
			return nil, err
		}
		var head struct{ Name, Description string }
		if err := yaml.Unmarshal(job, &head); err != nil {
			return nil, fmt.Errorf("%s: %w", one.file, err)
		}
		out[i] = Template{Name: head.Name, Summary: head.Description, Category: one.category, Tags: one.tags, Job: string(job)}
	}
	return out, nil
}
