# emacs-nox
$ON emacs --batch -Q --eval '(let ((h (make-hash-table :test (quote equal)))) (dotimes (i 100000) (puthash (format "%d" i) (make-string (mod i 99) ?x) h)) (garbage-collect) (message "%d" (hash-table-count h)))' && echo '(defun f (x) (* x 2))' >a.el && $ON emacs --batch -Q -f batch-byte-compile a.el && ls a.elc
