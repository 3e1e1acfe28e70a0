package client

import (
	"context"

	"github.com/openpai/paictl/pkg/job/code"
)

// PutCode isn't done: the server takes no folders from people yet.
func (*Jobs) PutCode(context.Context, string, *code.Archive) (sent bool, err error) {
	return false, Absent("a folder of code (--code)")
}
