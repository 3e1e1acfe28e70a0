package v1

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// AnnotationClonedFrom identifies the original of a cloned job. Its value is a ClonedFrom in JSON.
const AnnotationClonedFrom = "paictl.openpai.org/cloned-from"

// maxClonedFrom is the maximum length of the annotation in bytes, which is more than a ClonedFrom needs.
const maxClonedFrom = 4 << 10

// ClonedFrom identifies the original of a cloned job, as it was when the clone was submitted.
//
// +kubebuilder:object:generate=false
type ClonedFrom struct {
	User string    `json:"user,omitempty"`
	Name string    `json:"name,omitempty"`
	UID  types.UID `json:"uid,omitempty"` // a later job may reuse the name
	// VirtualCluster decides which users see the original job, even after that job was removed.
	VirtualCluster string    `json:"virtualCluster,omitempty"`
	Submitted      time.Time `json:"submitted,omitzero"`
}

// Title returns the displayed name of the original job, in the form user/name.
func (c *ClonedFrom) Title() string { return c.User + "/" + c.Name }

// Text returns the value of the annotation for c.
func (c *ClonedFrom) Text() (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write which job this one was cloned from: %w", err)
	}
	return string(data), nil
}

// ReadClonedFrom parses the annotation. It returns nil if the annotation is empty or invalid, which is possible because any user may have written
// it.
func ReadClonedFrom(text string) *ClonedFrom {
	c := &ClonedFrom{}
	if len(text) > maxClonedFrom || json.Unmarshal([]byte(text), c) != nil || c.User == "" || c.Name == "" || c.UID == "" {
		return nil
	}
	return c
}
