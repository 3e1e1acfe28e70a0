package v1

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// AnnotationClonedFrom is the job that a job was cloned from: a ClonedFrom in JSON.
const AnnotationClonedFrom = "paictl.openpai.org/cloned-from"

// maxClonedFrom is more bytes than a ClonedFrom needs.
const maxClonedFrom = 4 << 10

// ClonedFrom is the job that another one was cloned from, as the submission found it.
//
// +kubebuilder:object:generate=false
type ClonedFrom struct {
	User string    `json:"user,omitempty"`
	Name string    `json:"name,omitempty"`
	UID  types.UID `json:"uid,omitempty"` // a later job may reuse the name
	// VirtualCluster decides who sees that job, even when it no longer exists.
	VirtualCluster string    `json:"virtualCluster,omitempty"`
	Submitted      time.Time `json:"submitted,omitzero"`
}

// Title returns the displayed name of the job: user/name.
func (c *ClonedFrom) Title() string { return c.User + "/" + c.Name }

// Text returns the value of the annotation.
func (c *ClonedFrom) Text() (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write which job this one was cloned from: %w", err)
	}
	return string(data), nil
}

// ReadClonedFrom reads the annotation. It returns nil if the annotation is empty or invalid: anyone may have written it.
func ReadClonedFrom(text string) *ClonedFrom {
	c := &ClonedFrom{}
	if len(text) > maxClonedFrom || json.Unmarshal([]byte(text), c) != nil || c.User == "" || c.Name == "" || c.UID == "" {
		return nil
	}
	return c
}
