package reader

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	// maxDecoded is the maximum memory of one decoded object, and of all objects that are written at the same time.
	maxDecoded = 256 << 20
	// elementBytes is an upper bound of the memory for an object or an element of a list, without its strings. fieldBytes is an upper bound for an
	// entry of a map.
	elementBytes = 1 << 10
	fieldBytes   = 64
	// maxDepth is the maximum nesting depth of JSON, because the decoder accepts no deeper nesting.
	maxDepth = 10_000
)

var errMemory = errors.New("its object takes too much memory once it is unpacked")

// decode decodes the object of a job with its tasks, and returns the maximum size of the decoded object in memory. If the object would take too much
// memory, it returns an error without decoding the object.
func decode(text []byte) (*v1.Framework, int64, error) {
	packed, err := unpack(text)
	if err != nil {
		return nil, 0, errObject
	}
	weight := weigh(text) + weigh(packed)
	if weight > maxDecoded {
		return nil, 0, errMemory
	}
	var f v1.Framework
	if json.Unmarshal(text, &f) != nil {
		return nil, 0, errObject
	}
	if f.Status == nil || f.Status.AttemptStatus.TaskRoleStatuses != nil || packed == nil {
		return &f, weight, nil
	}
	if count, err := countTasks(packed); err != nil || count > v1.MaxTasks {
		return nil, 0, errObject
	}
	if json.Unmarshal(packed, &f.Status.AttemptStatus.TaskRoleStatuses) != nil {
		return nil, 0, errObject
	}
	return &f, weight, nil
}

// weigh returns an upper bound of the memory for a decoded JSON text. It only counts characters, because the text is validated later.
func weigh(text []byte) int64 {
	weight, quoted, lists := 2*int64(len(text)), false, []bool(nil)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			if lists = append(lists, c == '['); len(lists) > maxDepth {
				return maxDecoded + 1
			}
			weight += elementBytes
		case (c == '}' || c == ']') && len(lists) > 0:
			lists = lists[:len(lists)-1]
		case c == ',' && len(lists) > 0 && lists[len(lists)-1]:
			weight += elementBytes
		case c == ',':
			weight += fieldBytes
		}
	}
	return weight
}

// countTasks returns the number of tasks in roles. It doesn't keep the data of the tasks.
func countTasks(roles []byte) (n int, err error) {
	var all []struct {
		Tasks []struct{} `json:"taskStatuses"`
	}
	if err := json.Unmarshal(roles, &all); err != nil {
		return 0, err
	}
	for i := range all {
		n += len(all[i].Tasks)
	}
	return n, nil
}

// packedKey is the key under which OpenPAI's controller stores the compressed tasks of an attempt with many tasks.
const packedKey = "taskRoleStatusesCompressed"

// unpack returns the tasks of an attempt as JSON if they are compressed, and nil otherwise.
func unpack(text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte(packedKey)) {
		return nil, nil
	}
	var o struct {
		Status struct {
			AttemptStatus struct {
				Packed string `json:"taskRoleStatusesCompressed"`
			} `json:"attemptStatus"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &o); err != nil || o.Status.AttemptStatus.Packed == "" {
		return nil, err
	}
	packed, err := base64.StdEncoding.DecodeString(o.Status.AttemptStatus.Packed)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxObject+1))
	if err == nil && len(data) > maxObject {
		err = errMemory
	}
	return data, err
}
