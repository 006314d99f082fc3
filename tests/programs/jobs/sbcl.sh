# sbcl
$ON sbcl --noinform --eval '(progn (let ((h (make-hash-table :test (quote equal)))) (dotimes (i 200000) (setf (gethash (format nil "~d" i) h) (make-array (mod i 50)))) (print (hash-table-count h))) (gc :full t) (terpri) (sb-ext:exit))'
