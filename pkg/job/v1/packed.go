package v1

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Pack replaces the fields of the pod template with its JSON text, which takes a fifth of the memory, and keeps only part as fields. A packed
// Framework can't be written to the API.
func (t *Task) Pack(part corev1.PodTemplateSpec) error {
	text, err := t.Template()
	if err != nil {
		return err
	}
	t.packed, t.Pod = text, part
	return nil
}

// Template returns the complete pod template as JSON, whether or not the task is packed.
func (t *Task) Template() (string, error) {
	if t.packed != "" {
		return t.packed, nil
	}
	data, err := json.Marshal(&t.Pod)
	if err != nil {
		return "", fmt.Errorf("pod template: %w", err)
	}
	return string(data), nil
}
