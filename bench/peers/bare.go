// Go's net/http, which sends the bytes of captured replies in turn, whatever the path: `bare REPLIES.json`.
// Left out: everything, as in bare.mjs. It is given no requests with bodies.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
)

type reply struct {
	Status     int
	RawHeaders []string
	Body       string
	header     http.Header
}

func read(file string) (replies []*reply) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &replies)
	}
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range replies {
		one.header = http.Header{}
		for i := 0; i < len(one.RawHeaders); i += 2 {
			one.header.Add(one.RawHeaders[i], one.RawHeaders[i+1])
		}
		for _, name := range []string{"Date", "Connection", "Keep-Alive"} {
			one.header.Del(name) // net/http writes these itself
		}
	}
	return replies
}

func main() {
	replies := read(os.Args[1])
	var sent atomic.Uint64
	answer := func(writer http.ResponseWriter, request *http.Request) {
		one := replies[(sent.Add(1)-1)%uint64(len(replies))]
		header := writer.Header()
		for name, values := range one.header {
			header[name] = values
		}
		writer.WriteHeader(one.Status)
		io.WriteString(writer, one.Body)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s/v1\n", listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(answer)))
}
