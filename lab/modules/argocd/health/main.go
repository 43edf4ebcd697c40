// Argo CD's own evaluator of health scripts: a request on each line of the input, an answer on each
// line of the output. Tiphys' evaluator is compared with it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/argoproj/argo-cd/v3/util/lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type request struct {
	Script   string         `json:"script"`
	OpenLibs bool           `json:"openLibs"`
	Object   map[string]any `json:"object"`
	// Evaluates for at least so long, to be measured in the time that this program had a core.
	ForMillis int64 `json:"forMillis"`
}

type answer struct {
	Status      string  `json:"status"`
	Message     string  `json:"message"`
	Error       string  `json:"error,omitempty"`
	Evaluations int     `json:"evaluations"`
	Seconds     float64 `json:"seconds"`
}

func main() {
	input := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	output := json.NewEncoder(os.Stdout)
	for {
		var asked request
		err := input.Decode(&asked)
		if err == io.EOF {
			return
		}
		if err == nil {
			err = output.Encode(evaluate(asked))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func evaluate(asked request) answer {
	vm := lua.VM{UseOpenLibs: asked.OpenLibs}
	object := &unstructured.Unstructured{Object: asked.Object}
	began := onCore()
	var found answer
	for {
		found.Evaluations++
		health, err := vm.ExecuteHealthLua(object, asked.Script)
		if err != nil {
			found.Error = err.Error()
		} else {
			found.Status, found.Message = string(health.Status), health.Message
		}
		found.Seconds = (onCore() - began).Seconds()
		if found.Seconds*1000 >= float64(asked.ForMillis) {
			return found
		}
	}
}

// What other programs did meanwhile does not count.
func onCore() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
