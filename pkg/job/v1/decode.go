package v1

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// MaxTasks is how many tasks a Framework may have, over all of its roles.
const MaxTasks = 10_000

// UnmarshalJSON reads as much of a Framework as possible. The API stores the users' objects before they are decoded into these types, and
// an invalid one must not make the list of everyone's jobs unreadable. Then Unreadable has the reason.
func (f *Framework) UnmarshalJSON(data []byte) error {
	var p struct { // the parts that are read one by one
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec   json.RawMessage `json:"spec"`
		Status json.RawMessage `json:"status"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &p); err != nil {
		return err
	}
	*f = Framework{TypeMeta: p.TypeMeta, ObjectMeta: p.ObjectMeta}
	if len(p.Spec) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(p.Spec, &f.Spec); err != nil {
			f.Spec, f.Unreadable = FrameworkSpec{}, fmt.Sprintf("spec: %v", err)
		}
	}
	if len(p.Status) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(p.Status, &f.Status); err != nil {
			f.Status, f.Unreadable = nil, fmt.Sprintf("status: %v", err)
		}
	}
	return nil
}

// UnreadableStatus returns why the status couldn't be decoded, or "". Users don't write it: a newer controller may have written it, and
// then an older one must leave the Framework alone.
func (f *Framework) UnreadableStatus() string {
	if !strings.HasPrefix(f.Unreadable, "status: ") {
		return ""
	}
	return f.Unreadable
}

// Invalid returns why a Framework can't run in its present form, or "".
func (f *Framework) Invalid() string {
	if f.Unreadable != "" && f.UnreadableStatus() == "" {
		return "The job's object can't be read: " + f.Unreadable + "."
	}
	total := int64(0)
	for _, r := range f.Spec.TaskRoles {
		total += int64(max(0, r.TaskNumber))
	}
	if total > MaxTasks {
		return fmt.Sprintf("The job has %d tasks; the maximum is %d.", total, MaxTasks)
	}
	return ""
}
