package controller

import "github.com/openpai/paictl/pkg/framework/machine"

// SetPolicy gives a test shorter times.
func (o *Options) SetPolicy(p machine.Policy) { o.policy = p }
