package v1

import (
	"encoding/json"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/types"
)

// AnnotationAfter lists the jobs that must end before the Framework's first task starts. Its value is a JSON list of After.
const AnnotationAfter = "paictl.openpai.org/after"

// MaxAfter is the maximum number of jobs that one job can wait for.
const MaxAfter = 100

// maxAfterText is the maximum length of the annotation in bytes, which is more than MaxAfter jobs need.
const maxAfterText = 64 << 10

// After names a job that must end before another job starts.
type After struct {
	Framework string    `json:"framework"` // name of the object
	UID       types.UID `json:"uid"`       // a later job may reuse the name
	Job       string    `json:"job"`       // as users call it: "ann/train"
	// Ended means that any end of the job is sufficient. Otherwise the job must succeed, and if it doesn't, the waiting job fails.
	Ended bool `json:"ended,omitempty"`
}

// frameworkName matches the names that the CustomResourceDefinition allows for Frameworks.
var frameworkName = regexp.MustCompile(`^[a-z0-9]{1,63}$`)

// After returns the jobs that must end before the Framework starts, as the annotation lists them. It returns an error if the annotation is
// invalid.
func (f *Framework) After() ([]After, error) {
	text := f.Annotations[AnnotationAfter]
	if text == "" {
		return nil, nil
	}
	if len(text) > maxAfterText {
		return nil, fmt.Errorf("the annotation %s has %d bytes, but %d jobs need less than %d", AnnotationAfter, len(text), MaxAfter, maxAfterText)
	}
	var all []After
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("the annotation %s is not a list of jobs: %w", AnnotationAfter, err)
	}
	for i := range all {
		if !frameworkName.MatchString(all[i].Framework) || all[i].UID == "" {
			return nil, fmt.Errorf("the annotation %s names no job: %.80q", AnnotationAfter, all[i].Framework)
		}
	}
	if len(all) > MaxAfter {
		return nil, fmt.Errorf("the annotation %s has %d jobs, but at most %d are allowed", AnnotationAfter, len(all), MaxAfter)
	}
	return all, nil
}
